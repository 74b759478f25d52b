"""The job queue: what is to be done, in which order, and what became of it."""
