"""Programs that work on the files of a cluster whose daemons do not run, or are elsewhere."""
