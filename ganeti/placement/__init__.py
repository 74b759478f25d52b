"""Placement of instances: one model of a cluster that answers every question about capacity.

Nothing here reads a file, asks a node or knows where its facts come from.
"""
