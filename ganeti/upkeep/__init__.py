"""Starts instances that should run, and empties a node that is shut down.

The watcher does it in each run. The node daemon of the master node does it at once for what other
nodes report. Both see the master through LUXI only.
"""
