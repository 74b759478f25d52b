"""Why an instance has no place: what each node is short of, and which changes would make room.

:func:`explain_nodes` finds the reasons of one group, :mod:`ganeti.placement.hints` the changes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum

import numpy as np

from ganeti.base.json_types import JsonObject
from ganeti.placement import survival
from ganeti.placement.facts import TURNING, Instance, Mirror
from ganeti.placement.layout import Layout
from ganeti.placement.seats import FAILURES, Failure, Seats
from ganeti.placement.use import NOWHERE, Bools, Use

#: Most nodes that a text names; the data has all of them.
_SHOWN = 8


class Dimension(StrEnum):
    """A resource that can be missing on a node."""

    MEMORY = "memory"
    #: memory that is free, but reserved for the instances of a node that fails
    KEPT_MEMORY = "memory kept for failures"
    DISK = "disk"
    CPUS = "virtual processors"
    SPINDLES = "spindles"


_UNITS = {Dimension.MEMORY: "MiB of ", Dimension.KEPT_MEMORY: "MiB of ", Dimension.DISK: "MiB of "}


@dataclass(frozen=True, slots=True)
class Missing:
    """How much more of a dimension a node would need; in MiB for memory and disk."""

    dimension: Dimension
    amount: int

    @property
    def text(self) -> str:
        return f"{self.amount} {_UNITS.get(self.dimension, '')}{self.dimension}"


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """Why a node cannot take an instance: the missing amounts, or a reason in words."""

    node: str
    missing: tuple[Missing, ...] = ()
    reason: str = ""

    @property
    def text(self) -> str:
        if self.reason:
            return f"{self.node} {self.reason}"
        return f"{self.node} needs another {' and '.join(item.text for item in self.missing)}"


@dataclass(frozen=True, slots=True)
class GroupRefusal:
    """Why a group cannot take an instance: a ``reason`` for all of it, or one for each node.

    ``counts`` is the number of places that each criterion rules out, by the names of allocators
    (``FailMem``).
    """

    group: str
    reason: str = ""
    counts: tuple[tuple[str, int], ...] = ()
    nodes: tuple[NodeRefusal, ...] = ()

    @property
    def text(self) -> str:
        head = self.reason or ", ".join(f"{name}: {count}" for name, count in self.counts)
        shown = [node.text for node in self.nodes[:_SHOWN]]
        if len(self.nodes) > _SHOWN:
            shown.append(f"and {len(self.nodes) - _SHOWN} more nodes")
        tail = f" ({'; '.join(shown)})" if shown else ""
        return f"group {self.group}: {head or 'too few nodes'}{tail}"

    def data(self) -> JsonObject:
        """For programs."""
        return {
            "group": self.group,
            "reason": self.reason or None,
            "counts": {str(name): count for name, count in self.counts},
            "nodes": [
                {
                    "node": node.node,
                    "reason": node.reason or None,
                    "missing": {str(item.dimension): item.amount for item in node.missing},
                    "text": node.text,
                }
                for node in self.nodes
            ],
        }


class Change(StrEnum):
    """A change that would make an instance fit."""

    REMOVE_RESERVATION = "stop reserving"
    MOVE = "move"
    SHRINK = "shrink"
    OTHER_GROUP = "other group"
    OTHER_NODES = "other nodes"


@dataclass(frozen=True, slots=True)
class Hint:
    """One change that makes an instance fit."""

    change: Change
    #: the reservation, the instance or the group that it is about
    name: str
    #: node to move to
    node: str = ""
    #: size that fits, for SHRINK
    dimension: str = ""
    amount: int = 0

    @property
    def text(self) -> str:
        """The advice, to be read after "it would fit if you"."""
        match self.change:
            case Change.REMOVE_RESERVATION:
                return f"release the reservation {self.name}"
            case Change.MOVE:
                return f"move {self.name} to {self.node} first"
            case Change.SHRINK:
                if self.dimension == "vcpus":
                    return f"reduce its {Dimension.CPUS} to {self.amount}"
                return f"reduce its {self.dimension} to {self.amount} MiB"
            case Change.OTHER_GROUP:
                return f"place it in group {self.name}"
            case Change.OTHER_NODES:
                return f"allow node {self.node}, which the request excludes"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an instance has no place in a cluster."""

    name: str
    groups: tuple[GroupRefusal, ...]
    hints: tuple[Hint, ...] = ()

    @property
    def text(self) -> str:
        reason = "; ".join(group.text for group in self.groups) or "there is no group"
        ways = ", or ".join(hint.text for hint in self.hints)
        return f"{reason}; it would fit if you {ways}" if ways else reason

    def data(self) -> JsonObject:
        """For JSON: names and amounts, no sentences that need reading."""
        return {
            "name": self.name,
            "groups": [group.data() for group in self.groups],
            "hints": [
                {**asdict(hint), "change": str(hint.change), "text": hint.text}
                for hint in self.hints
            ],
        }


def explain_nodes(
    layout: Layout, item: Instance, within: Bools | None, weak: frozenset[int]
) -> tuple[NodeRefusal, ...]:
    """Why each node of a group cannot be the primary node; a node that can is not in the result.

    ``weak`` are the nodes whose failure the cluster does not survive now: they are no reason.
    """
    board = layout.board
    wide = layout.transfer(board.add_instances([item]))
    index = len(board.instances)
    seats = Seats(wide, item, index)
    fits = seats.allowed() if len(seats.nodes) else np.zeros((0, 0), dtype=bool)
    able = {int(seats.rows[i]): row for i, row in enumerate(fits)}
    found = []
    for number, node in enumerate(board.nodes):
        if not board.online[number]:
            found.append(NodeRefusal(node.name, reason="is offline, drained or does not answer"))
        elif within is not None and not within[number]:
            found.append(NodeRefusal(node.name, reason="is excluded by the request"))
        else:
            missing = find_missing(layout, item, number)
            reason = "" if missing else _reason(seats, number, able.get(number), weak)
            if missing or reason:
                found.append(NodeRefusal(node.name, missing, reason))
    return tuple(found)


def _reason(seats: Seats, node: int, able: Bools | None, weak: frozenset[int]) -> str:
    reason = FAILURES[seats.primary_failures[node]]
    if reason == Failure.TAGS:
        return "runs an instance with the same exclusion tag"
    if reason:
        return f"is refused: {reason}"
    if able is None or not able.any():
        return "has no second node for the mirror"
    after = seats.layout.move(
        seats.index, node, int(seats.s[0, int(np.argmax(able))]) if seats.pairs else NOWHERE
    )
    names = [after.board.nodes[i].name for i in sorted(set(survival.list_failing(after)) - weak)]
    shown = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
    return f"can take it, but then nothing could replace {shown} (N+1)" if names else ""


def find_missing(layout: Layout, item: Instance, node: int) -> tuple[Missing, ...]:
    """How much more a node would need to be the primary node of a new instance."""
    board = layout.board
    found = []
    left = min(layout.memory_left[node], layout.memory_left_all[node])
    after = left - item.memory
    if after <= 0 and item.memory:
        found.append(Missing(Dimension.MEMORY, int(1 - after)))
    elif layout.memory_left[node] - item.memory < layout.reserved[node] and not layout.fails[node]:
        short = layout.reserved[node] - layout.memory_left[node] + item.memory
        found.append(Missing(Dimension.KEPT_MEMORY, int(np.ceil(short))))
    found += _find_missing_disk(layout, item, node)
    used = layout.used[Use.CPU_ALL, node] + board.node_cpus[node] + item.vcpus
    over = used - board.cpu_limit[node]
    if over > 0:
        found.append(Missing(Dimension.CPUS, int(np.ceil(over))))
    return tuple(found)


def _find_missing_disk(layout: Layout, item: Instance, node: int) -> list[Missing]:
    """How much more a node would need for the disks of an instance."""
    board = layout.board
    found: list[Missing] = []
    if item.mirror is Mirror.EVERY_NODE or not item.disk:
        return found
    room = board.disk_room[node] - layout.used[Use.DISK_ALL, node] - item.disk
    if room <= 0:
        found.append(Missing(Dimension.DISK, int(1 - room)))
    if board.exclusive[node]:
        spare = board.own_spindle_room[node] - layout.used[Use.OWN_SPINDLES_ALL, node]
        if spare < (item.spindles or 0):
            found.append(Missing(Dimension.SPINDLES, int((item.spindles or 0) - spare)))
    elif item.template in TURNING:
        turning = layout.used[Use.SPINDLES_ALL, node] + item.spindle_use
        if turning > board.spindle_limit[node]:
            over = int(np.ceil(turning - board.spindle_limit[node]))
            found.append(Missing(Dimension.SPINDLES, over))
    return found


def explain_targets(
    layout: Layout, index: int, closed: frozenset[str], *, mirror: bool
) -> tuple[NodeRefusal, ...]:
    """Why each node cannot be the new secondary node of an instance, or, without ``mirror``, the
    new primary one; ``closed`` are the nodes to leave."""
    board = layout.board
    item = board.instances[index]
    primary = int(layout.primary[index])
    away = layout.move(index, NOWHERE, NOWHERE)
    found = []
    for number, node in enumerate(board.nodes):
        if number == primary:
            reason = "runs it"
        elif node.name in closed:
            reason = "is the node to leave"
        elif not board.online[number]:
            reason = "is offline, drained or does not answer"
        else:
            missing = (
                _find_missing_mirror(layout, index, number)
                if mirror
                else find_missing(away, item, number)
            )
            found.append(
                NodeRefusal(node.name, missing, "" if missing else "is refused by a policy or tag")
            )
            continue
        found.append(NodeRefusal(node.name, reason=reason))
    return tuple(found)


def _find_missing_mirror(layout: Layout, index: int, node: int) -> tuple[Missing, ...]:
    """How much more a node would need to be the secondary node of an instance."""
    board = layout.board
    found = _find_missing_disk(layout, board.instances[index], node)
    peer = layout.peers[node, layout.primary[index]] + board.uses.reserve[index]
    short = max(layout.reserved[node], peer) - layout.memory_left[node]
    if short > 0 and not layout.fails[node]:
        found.append(Missing(Dimension.KEPT_MEMORY, int(np.ceil(short))))
    return tuple(found)
