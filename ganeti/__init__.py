"""A cluster manager for long-lived virtual machines on ordinary servers."""
