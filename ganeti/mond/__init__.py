"""ganeti-mond: reports of this node over HTTP, for monitoring systems and for hbal."""
