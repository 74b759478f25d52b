"""The remote API: HTTPS and JSON in front of LUXI."""
