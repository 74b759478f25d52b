"""The commands of gnt-network."""
