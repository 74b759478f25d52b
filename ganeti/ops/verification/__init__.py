"""What cluster verification compares, a subject per module."""
