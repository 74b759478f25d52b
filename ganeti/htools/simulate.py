"""Empty groups made up on the command line (``--simulate``)."""

from __future__ import annotations

from collections.abc import Sequence

from ganeti.base import units
from ganeti.errors import GenericError
from ganeti.htools.options import UsageError
from ganeti.placement.facts import Cluster, Group, Node

_POLICIES = {"p": "preferred", "a": "last_resort", "u": "unallocable"}


def build(specs: Sequence[str]) -> Cluster:
    """A cluster of empty groups, each from POLICY,NODES,DISK,RAM,CPUS[,SPINDLES]."""
    groups, nodes = [], []
    for number, spec in enumerate(specs, 1):
        group = f"group-{number:02d}"
        policy, count, disk, memory, cpus, spindles = _read(spec)
        uuid = f"fake-uuid-{number:02d}"
        groups.append(Group(group, uuid, policy))
        nodes += [
            Node(
                name=f"node-{number:02d}-{index:03d}",
                group=uuid,
                memory=memory,
                node_memory=0,
                free_memory=memory,
                disk=disk,
                free_disk=disk,
                cpus=cpus,
                spindles=spindles,
            )
            for index in range(1, count + 1)
        ]
    return Cluster(tuple(groups), tuple(nodes), ())


def _read(spec: str) -> tuple[str, int, int, int, int, int]:
    parts = spec.split(",")
    if len(parts) not in (5, 6):
        raise UsageError(
            f"--simulate: '{spec}' is not POLICY,NODES,DISK,RAM,CPUS or "
            "POLICY,NODES,DISK,RAM,CPUS,SPINDLES"
        )
    policy = _POLICIES.get(parts[0], parts[0])
    if policy not in _POLICIES.values():
        raise UsageError(
            f"--simulate: invalid policy '{parts[0]}'; choose from "
            f"{', '.join([*_POLICIES.values(), *_POLICIES])}"
        )
    try:
        count, cpus = int(parts[1]), int(parts[4])
        disk, memory = size(parts[2]), size(parts[3])
        spindles = int(parts[5]) if len(parts) == 6 else 1
    except (ValueError, GenericError) as err:
        raise UsageError(f"--simulate: '{spec}' has a value that is not a number") from err
    if min(count, disk, memory, cpus, spindles) < 0:
        raise UsageError(f"--simulate: '{spec}' has a negative value")
    return policy, count, disk, memory, cpus, spindles


def size(text: str) -> int:
    """MiB of a number that may have a unit (m, g, t)."""
    return units.parse_size(text)
