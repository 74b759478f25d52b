"""Tells people and programs of events: notices, filters, outboxes, and the ways to send them."""
