"""The gnt-* commands: clients of the master daemon for people and scripts.

``command`` and ``parser`` know what a command looks like, ``program`` runs one, ``options`` has
the options as data, ``values`` reads their texts; ``jobs`` submits and waits, ``output`` prints.
Each program of ``programs`` has a package of its own; ``__main__`` starts all of them.
"""
