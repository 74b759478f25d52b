"""The node daemon: does on one host what the master asks."""
