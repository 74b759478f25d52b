"""The master daemon: everything below, put together and served over LUXI."""
