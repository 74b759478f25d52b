"""The commands of gnt-filter."""
