"""Steps that several operations take on nodes and in the configuration."""
