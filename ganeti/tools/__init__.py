"""Small programs for the upkeep of a cluster, by hand, by cron and by scripts."""
