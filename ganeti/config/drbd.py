"""Minors and ports of DRBD disks, as the configuration has given them out. Pure.

A minor belongs to a node: the disk that has it in the configuration owns it there, whatever the
kernel of the node says. So it is found without asking the node.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator

from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.model.ids import NodeUuid

#: Parts of a DRBD disk's logical id: [node A, node B, port, minor A, minor B, secret].
PARTS = 6
#: Bytes of a shared secret; DRBD takes at most 63 characters.
_SECRET_BYTES = 20


def is_enabled(templates: Iterable[str]) -> bool:
    """Whether DRBD is among the disk templates of a cluster."""
    return DiskTemplate.DRBD in templates


def is_drbd(disk: Disk) -> bool:
    """Whether it is a DRBD disk, with or without its place."""
    return disk.dev_type is DiskTemplate.DRBD


def has_place(disk: Disk) -> bool:
    """Whether it is a DRBD disk with all parts of a logical id, each of the right kind."""
    if not is_drbd(disk) or len(disk.logical_id) != PARTS:
        return False
    node_a, node_b, *numbers, secret = disk.logical_id
    texts = all(isinstance(part, str) for part in (node_a, node_b, secret))
    return texts and all(isinstance(part, int) for part in numbers)


def disks(config: Config) -> Iterator[Disk]:
    """All DRBD disks that have a place, forthcoming ones included."""
    for disk in config.disks.values():
        if has_place(disk):
            yield disk


def minors(disk: Disk) -> tuple[tuple[NodeUuid, int], tuple[NodeUuid, int]]:
    """(node uuid, minor) of both sides of a DRBD disk."""
    node_a, node_b, _port, minor_a, minor_b, _secret = disk.logical_id
    return (NodeUuid(node_a), int(minor_a)), (NodeUuid(node_b), int(minor_b))


def port(disk: Disk) -> int | None:
    """TCP port of a DRBD disk; None for other disks, and for one that has none yet."""
    return int(disk.logical_id[2]) or None if has_place(disk) else None


def minor_map(config: Config) -> dict[NodeUuid, dict[int, list[str]]]:
    """Node uuid -> minor -> uuids of the disks that have it there; one each, if all is well."""
    found: dict[NodeUuid, dict[int, list[str]]] = {}
    for disk in disks(config):
        for node, minor in minors(disk):
            found.setdefault(node, {}).setdefault(minor, []).append(disk.uuid)
    return found


def find_free_minor(in_use: Iterable[int]) -> int:
    """The lowest minor that is not taken: low ones fit into ``minor_count`` of the module."""
    used = set(in_use)
    return next(minor for minor in range(len(used) + 1) if minor not in used)


def new_secret() -> str:
    """A shared secret with which the two sides of a disk know each other: 40 hex digits."""
    return secrets.token_hex(_SECRET_BYTES)
