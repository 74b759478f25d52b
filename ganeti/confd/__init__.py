"""ganeti-confd: signed answers about the configuration over UDP, from any master candidate."""
