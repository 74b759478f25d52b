"""Locks inside the master daemon; requests wait without holding a thread."""
