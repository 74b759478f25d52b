"""Steps that move an instance to another node."""
