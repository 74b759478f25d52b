"""Template ``drbd``: a disk mirrored between two nodes by the DRBD kernel module."""
