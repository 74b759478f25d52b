"""The commands of gnt-disk."""
