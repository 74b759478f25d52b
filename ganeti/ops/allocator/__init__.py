"""Asking external allocators where instances go."""
