"""Talking to other machines and processes: TLS, certificates, HTTP, framed messages, names."""
