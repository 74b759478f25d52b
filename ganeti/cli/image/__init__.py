"""The commands of gnt-image."""
