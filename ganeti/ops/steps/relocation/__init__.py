"""Steps that bring an instance to another node."""
