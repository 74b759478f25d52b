"""Queries: fields as data, one engine for every kind of thing, live data only when needed."""
