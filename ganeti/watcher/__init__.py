"""The watcher: started by cron on each node, looks after the cluster for a moment, and ends."""
