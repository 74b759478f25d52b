"""Decisions without input or output: who may act, who is dead, and what is started elsewhere.

Events and moments go in, effects come out; clocks and messages belong to the callers. The daemons
perform the effects, and the simulator in ``test/recovery`` plays whole clusters of these machines.
"""
