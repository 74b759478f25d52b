"""The checks of cluster verification, a subject per module."""
