"""Objects of the placement model for several tests."""

from __future__ import annotations

from ganeti.placement.facts import Instance


def make_instance(name: str, *nodes: str, template: str = "drbd", memory: int = 1024) -> Instance:
    primary, secondary = (*nodes, "", "")[:2]
    return Instance(name, memory, 1024, 1, "running", True, primary, secondary, template)
