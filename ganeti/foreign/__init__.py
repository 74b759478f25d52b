"""Guests of other virtualisation products: what their files say, as plain data."""
