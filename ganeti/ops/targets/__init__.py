"""What operations act on: how it is found and locked."""
