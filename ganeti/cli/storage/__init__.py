"""The commands of gnt-storage."""
