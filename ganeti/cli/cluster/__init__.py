"""The commands of gnt-cluster."""
