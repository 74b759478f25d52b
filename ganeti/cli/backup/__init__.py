"""The commands of gnt-backup."""
