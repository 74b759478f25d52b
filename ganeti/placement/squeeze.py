"""Which nodes can be switched off, and which have to come back, so that enough room stays.

Each group is planned by itself: nothing moves between groups. Only nodes with a standby tag are
switched, and only those without instances whose data is on their own disks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ganeti.placement import tags
from ganeti.placement.balance import Goal, Step, steps
from ganeti.placement.board import Board
from ganeti.placement.facts import Cluster, Group, Mirror, Node
from ganeti.placement.layout import Layout
from ganeti.placement.move_kinds import Limits
from ganeti.placement.use import Use


@dataclass(frozen=True, slots=True)
class Room:
    """How much every node keeps free, in instances of the usual size of its group.

    ``least``: with less, nodes come back. ``target``: what has to be left after switching off.
    """

    least: float = 2.0
    target: float = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Squeeze:
    """The plan for one group."""

    group: Group
    #: names of nodes that could be switched off (fullest first), and of those that could come back
    may_go: tuple[str, ...]
    may_come: tuple[str, ...]
    go: tuple[str, ...] = ()
    come: tuple[str, ...] = ()
    #: moves that empty the nodes of ``go``
    moves: tuple[Step, ...] = ()
    #: all nodes that may come do not bring enough room
    short: bool = False


def plan(cluster: Cluster, group: Group, room: Room) -> Squeeze:
    """Bring nodes back when there is too little room; otherwise switch off what is not needed."""
    layout = Layout.from_board(Board(cluster, group))
    nodes = [node for node in cluster.nodes if node.group == group.uuid]
    found = Squeeze(group, _may_go(layout), tuple(sorted(n.name for n in nodes if _may_come(n))))
    if not any(not node.offline for node in nodes):
        return found
    if not has_room(layout, group, room.least):
        return _bring_back(cluster, found, room)
    return _switch_off(cluster, found, room)


def _standby(node: Node) -> bool:
    return any(tag.startswith(tags.STANDBY) for tag in node.tags)


def _may_come(node: Node) -> bool:
    return node.offline and _standby(node)


def _may_go(layout: Layout) -> tuple[str, ...]:
    """Standby nodes that run only what every node can run; the fullest first."""
    board = layout.board
    bound = set()
    for item in board.instances:
        if item.mirror is not Mirror.EVERY_NODE:
            bound |= {item.primary, item.secondary}
    able = [
        (float(layout.memory_left[i]), node.name)
        for i, node in enumerate(board.nodes)
        if not node.offline and not node.master and _standby(node) and node.name not in bound
    ]
    return tuple(name for _, name in sorted(able))


def has_room(layout: Layout, group: Group, factor: float) -> bool:
    """Whether every online node could take ``factor`` usual instances more."""
    board = layout.board
    usual = board.cluster.policy_of(group).standard
    used = layout.used
    on = board.online
    memory = np.minimum(layout.memory_left, layout.memory_left_all)
    cpus = used[Use.CPU_ALL] + board.node_cpus + int(factor * usual.cpus)
    enough = (memory > int(factor * usual.memory)) & (cpus <= board.cpu_limit)
    return bool(enough[on].all())


def set_online(cluster: Cluster, names: Iterable[str], *, online: bool) -> Cluster:
    """The cluster with some nodes switched on or off."""
    chosen = frozenset(names)
    nodes = tuple(
        dataclasses.replace(node, offline=not online) if node.name in chosen else node
        for node in cluster.nodes
    )
    return dataclasses.replace(cluster, nodes=nodes)


def _balance(cluster: Cluster, group: Group) -> tuple[Layout, list[Step]]:
    """The group after balancing without copying a disk; nodes that are offline are emptied."""
    layout = Layout.from_board(Board(cluster, group))
    done = list(steps(layout, Limits(disk_moves=False, strict=True), Goal()))
    return (done[-1].after if done else layout), done


def _is_empty(layout: Layout, names: Sequence[str]) -> bool:
    index = [layout.board.node_index[name] for name in names]
    return not np.isin(layout.primary, index).any()


def _switch_off(cluster: Cluster, found: Squeeze, room: Room) -> Squeeze:
    """One node after the other, the emptiest first, as long as the room stays."""
    gone: list[str] = []
    moves: list[Step] = []
    for name in reversed(found.may_go):
        trial = set_online(cluster, [*gone, name], online=False)
        last, done = _balance(trial, found.group)
        if not last.board.online.any():
            continue
        if _is_empty(last, [*gone, name]) and has_room(last, found.group, room.target):
            gone.append(name)
            moves = done
    return dataclasses.replace(found, go=tuple(reversed(gone)), moves=tuple(moves))


def _bring_back(cluster: Cluster, found: Squeeze, room: Room) -> Squeeze:
    """One node after the other until there is room; all of them when that is not enough."""
    back: list[str] = []
    for name in found.may_come:
        back.append(name)
        last, _ = _balance(set_online(cluster, back, online=True), found.group)
        if has_room(last, found.group, room.target):
            return dataclasses.replace(found, come=tuple(back))
    return dataclasses.replace(found, come=tuple(back), short=True)
