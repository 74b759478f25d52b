"""Steps on nodes: roles, addresses, files that all have."""
