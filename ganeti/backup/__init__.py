"""Backups of instances: what is read, where it is kept, and what stays."""
