"""The commands of gnt-debug."""
