"""Steps that make and place reservations."""
