"""Answers of nodes about themselves, with their times. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ganeti.model.config import Config
from ganeti.rpc.objects import InstanceInfo

#: Storage type of physical volumes, which are counted.
SPINDLES = "lvm-pv"
#: Stands for "no storage unit matters".
NO_UNIT = ("", "")


@dataclass(frozen=True)
class NodeFacts:
    """The present answer of one node. No node knows of reservations."""

    #: resources as the hypervisor sees them, by their names on the wire
    resources: Mapping[str, Any] = field(default_factory=dict)
    #: (size, free) of the storage unit in question
    room: tuple[int, int] = (0, 0)
    #: (all, free) physical disks where storage is exclusive
    spindles: tuple[int, int] = (0, 0)
    #: what runs there, by name
    running: Mapping[str, InstanceInfo] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """A resource by its name on the wire; 0 when the node does not say."""
        value = self.resources.get(name, 0)
        return int(value) if type(value) in (int, float) else 0


@dataclass(frozen=True)
class Answers:
    """The answers of all nodes in one round; silent nodes are missing."""

    #: the configuration when they were asked
    config: Config
    #: by node uuid
    nodes: Mapping[str, NodeFacts]
    #: the storage unit (type, name) whose room they told
    unit: tuple[str, str] = NO_UNIT
