"""The commands of gnt-group."""
