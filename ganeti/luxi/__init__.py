"""LUXI: requests to the master daemon over a Unix socket.

``calls`` has the methods as data and the form of messages, ``client`` the typed client.
Nothing is imported here, so that a command pays only for what it uses.
"""
