"""Decisions without effects: what an operation is going to do, and what it refuses."""
