"""One module for each kind of thing that can be queried; imported on first use."""
