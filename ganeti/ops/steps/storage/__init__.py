"""Steps on disks: make, remove, copy, grow, convert, keep in sync."""
