"""Disks and storage units that are LVM volumes."""
