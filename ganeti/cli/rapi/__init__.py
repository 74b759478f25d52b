"""The commands of gnt-rapi."""
