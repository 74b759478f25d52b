"""The commands of gnt-os."""
