"""Moves of instances off nodes for maintenance, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ganeti.placement import agenda, recheck, relocate
from ganeti.placement.agenda import Entry
from ganeti.placement.board import Board
from ganeti.placement.facts import Cluster, Instance
from ganeti.placement.layout import Layout
from ganeti.placement.relocate import Leave, Step, Verb


@dataclass(frozen=True, slots=True)
class Trip:
    """Instances that move, in this order, and those that do not (with the reason)."""

    entries: tuple[Entry, ...]
    stay: tuple[tuple[str, str], ...]


def leave(cluster: Cluster, nodes: frozenset[str], *, disks_too: bool) -> Trip:
    """Guests off nodes, which are drained; with ``disks_too`` also the mirrors of other guests.

    The others stay where they are, so a node without guests may still hold mirrors.
    """
    concerned = [
        item
        for item in cluster.instances
        if item.primary in nodes or (disks_too and item.secondary in nodes)
    ]
    mode = Leave.ALL if disks_too else Leave.PRIMARY
    found = relocate.evacuate(cluster, [item.name for item in concerned], mode, nodes)
    items = {item.name: item for item in concerned}
    entries = [_entry(items[moved.name], moved.nodes, moved.steps) for moved in found.moved]
    return Trip(agenda.order_entries(entries, aside=nodes), found.failed)


def plan_return(
    cluster: Cluster, homes: Mapping[str, Sequence[str]], nodes: frozenset[str]
) -> Trip:
    """Instances to the nodes they came from (``homes``, by name), as far as the rules allow.

    A move that makes room for another goes first. ``nodes`` are those that get their guests back.
    """
    items = {item.name: item for item in cluster.instances}
    group_of = {node.name: node.group for node in cluster.nodes}
    layouts = {
        group.uuid: Layout.from_board(Board(cluster, group))
        for group in cluster.groups
        if group.uuid in group_of.values()
    }
    todo = [name for name in _order(items, homes) if _places(items[name]) != tuple(homes[name])]
    entries: list[Entry] = []
    reason: dict[str, str] = {}
    moving = True
    while moving and todo:
        moving = False
        for name in list(todo):
            uuid = group_of.get(items[name].primary, "")
            if uuid not in layouts:
                reason[name] = "it has no node"
                continue
            found = _home(layouts[uuid], items[name], tuple(homes[name]))
            if isinstance(found, str):
                reason[name] = found
                continue
            layouts[uuid], entry = found
            entries.append(entry)
            todo.remove(name)
            moving = True
    return Trip(
        agenda.order_entries(entries, aside=nodes), tuple((name, reason[name]) for name in todo)
    )


def _order(items: Mapping[str, Instance], names: Iterable[str]) -> list[str]:
    """The largest first, as they are the hardest to place."""
    known = [items[name] for name in names if name in items]
    return [item.name for item in sorted(known, key=lambda one: (-one.memory, one.name))]


def _home(layout: Layout, item: Instance, goal: tuple[str, ...]) -> tuple[Layout, Entry] | str:
    board = layout.board
    reason = recheck.explain_refusal(layout, item.name, goal)
    if reason:
        return reason
    index = board.instance_index[item.name]
    rows = [board.node_index[name] for name in goal]
    way = recheck.way(layout, index, rows)
    if way is None:
        return "it has two other nodes now, so its disks would be copied twice"
    steps = relocate.steps_of(layout, item, *way)
    after = layout.move(index, rows[0], rows[1] if len(rows) > 1 else -1)
    return after, _entry(item, goal, steps)


def _places(item: Instance) -> tuple[str, ...]:
    return tuple(name for name in (item.primary, item.secondary) if name)


def _entry(item: Instance, nodes: tuple[str, ...], steps: tuple[Step, ...]) -> Entry:
    return dataclasses.replace(
        Entry(item.name, _places(item), nodes, steps, item.runs), copied=_count_copied(item, steps)
    )


def _count_copied(item: Instance, steps: tuple[Step, ...]) -> int:
    if item.forthcoming:
        return 0
    sizes = {Verb.REPLACE_SECONDARY: item.disk, Verb.MIGRATE: item.memory * item.runs}
    return sum(sizes.get(step.verb, 0) for step in steps)
