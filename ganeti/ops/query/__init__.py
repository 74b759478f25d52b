"""Queries as operations."""
