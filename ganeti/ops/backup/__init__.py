"""Exports of instances to a directory of a node, and backups to a repository."""
