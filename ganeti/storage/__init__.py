"""Disks on a node; what exists as bytes."""
