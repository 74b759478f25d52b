"""Typed facts of a cluster; no input or output."""
