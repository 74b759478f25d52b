"""Ground floor: files, processes, text and time; knows nothing of clusters."""
