"""TLS for both ends of a connection; the only package that imports pyOpenSSL."""
