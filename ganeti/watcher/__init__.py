"""The watcher: started by cron on each node, starts what died, and ends."""
