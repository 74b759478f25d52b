"""Choosing nodes for instances: the built-in allocator, and programs of the site."""
