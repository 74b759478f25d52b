"""Making and ending a cluster: what happens while no master daemon runs."""
