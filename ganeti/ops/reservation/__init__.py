"""Instances that are reserved before they exist."""
