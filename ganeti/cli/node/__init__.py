"""The commands of gnt-node."""
