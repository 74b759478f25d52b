"""Calls from the master daemon to the node daemons: HTTPS, JSON, mutual TLS."""
