"""Checks of a server: what it is missing for a cluster, or what is wrong with it as a node.

``looks`` reads the server and makes facts, ``checks`` judges facts and is pure. Both are imported
when they are needed: a server on which a library is broken must still get an answer.
"""
