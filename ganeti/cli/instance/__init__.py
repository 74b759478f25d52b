"""The commands of gnt-instance."""
