"""Hypervisors on a node; what runs."""
