"""Readers of ``drbdsetup events2`` and ``drbdsetup status``. Pure.

``events2`` names an object in each line, first as it is (``exists``), then as it changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ganeti import errors

_VERBS = ("exists", "create", "change", "destroy", "rename", "call", "response")


@dataclass(frozen=True)
class Event:
    """One line: what happened to which kind of object, with its properties."""

    verb: str
    kind: str
    values: dict[str, str] = field(default_factory=dict)

    @property
    def resource(self) -> str:
        return self.values.get("name", "")


def parse_event(line: str) -> Event:
    """One line of ``events2``; the end of the present state is ``exists -`` without properties.

    Raises:
        BlockDeviceError: the line is something else.
    """
    words = line.split()
    if words and words[0].endswith(":") is False and len(words) >= 2 and words[0] in _VERBS:
        pairs = (word.partition(":") for word in words[2:])
        return Event(words[0], words[1], {name: value for name, _, value in pairs})
    raise errors.BlockDeviceError(f"drbdsetup events2 said something else: {line[:120]!r}")


def parse_events(lines: Iterable[str]) -> list[Event]:
    """The objects that exist; BlockDeviceError."""
    return [event for event in map(parse_event, lines) if event.kind != "-"]


@dataclass(frozen=True)
class ResourceStatus:
    """A resource as ``status`` shows it: own role and disk, and those of the peer."""

    name: str
    role: str
    disk: str
    connection: str = "StandAlone"
    peer_role: str = "Unknown"
    replication: str = "Off"
    peer_disk: str = "DUnknown"
    done: float | None = None


def parse_status(text: str) -> list[ResourceStatus]:
    """Resources with one volume, with or without ``--verbose`` and ``--statistics``."""
    found: list[ResourceStatus] = []
    for block in text.split("\n\n"):
        if block.strip():
            found.append(_status(block))
    return found


def _status(block: str) -> ResourceStatus:
    head, *lines = [line for line in block.splitlines() if line.strip()]
    name, *words = head.split()
    own = _values(words)
    peer: dict[str, str] = {}
    has_peer = False
    for line in lines:
        words = line.split()
        if words[0] == "peer":
            has_peer = True
            peer.update(_values(words[1:], {"role": "peer_role"}))
        else:
            (peer if has_peer else own).update(_values(words))
    if "role" not in own or "disk" not in own:
        raise errors.BlockDeviceError(f"drbdsetup status said something else: {block[:120]!r}")
    return ResourceStatus(
        name=name,
        role=own["role"],
        disk=own["disk"],
        connection=peer.get("connection", "Connected" if has_peer else "StandAlone"),
        peer_role=peer.get("peer_role", "Unknown"),
        replication=peer.get("replication", "Off"),
        peer_disk=peer.get("peer-disk", "DUnknown"),
        done=float(peer["done"]) if "done" in peer else None,
    )


def _values(words: Iterable[str], renamed: dict[str, str] | None = None) -> dict[str, str]:
    pairs = (word.partition(":") for word in words if ":" in word)
    return {(renamed or {}).get(name, name): value for name, _, value in pairs}
