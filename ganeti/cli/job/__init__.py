"""The commands of gnt-job."""
