"""Whether the instances of a node have somewhere to go when the node fails.

Mirrored instances start on their secondary nodes; those on shared storage, and those that have to
be made again, go to the best node of the group, one after the other.
"""

from __future__ import annotations

import numpy as np

from ganeti.placement.facts import Instance, Mirror
from ganeti.placement.layout import Layout
from ganeti.placement.seats import Seats
from ganeti.placement.use import NOWHERE, Bools, Floats, Ints, Use


def failing(layout: Layout, among: Bools | None = None) -> list[int]:
    """The nodes (of ``among``) whose instances have nowhere to go."""
    if among is not None:
        return _failing(layout, among)
    if layout.stuck is None:
        layout.stuck = tuple(_failing(layout, np.ones(len(layout.board.nodes), dtype=bool)))
    return list(layout.stuck)


def mirrored_load(layout: Layout) -> Floats:
    """Memory that (row) has to take over when (column) fails."""
    board, count = layout.board, len(layout.board.nodes)
    both = (layout.primary != NOWHERE) & (layout.secondary != NOWHERE) & board.uses.real
    cell = layout.secondary[both] * count + layout.primary[both]
    memory = board.uses.primary[Use.MEMORY_ALL][both]
    total: Floats = np.bincount(cell, weights=memory, minlength=count * count).astype(float)
    return total.reshape(count, count)


def survives(layout: Layout, node: int) -> bool:
    """Whether everything that runs on a node has somewhere else to go."""
    only = np.zeros(len(layout.board.nodes), dtype=bool)
    only[node] = True
    return not _failing(layout, only)


def _failing(layout: Layout, among: Bools) -> list[int]:
    board = layout.board
    here = board.uses.real & (layout.primary != NOWHERE)
    busy = np.zeros(len(board.nodes), dtype=bool)
    busy[layout.primary[here]] = True
    asked = np.flatnonzero(busy & among)
    if not len(asked):
        return []
    load = mirrored_load(layout)[:, asked]
    short: Bools = (load > 0) & ((layout.memory_left[:, None] - load <= 0) | ~board.online[:, None])
    lost: Bools = np.array(short.any(axis=0), dtype=bool)
    alone = here & (layout.secondary == NOWHERE)
    if not alone.any():
        return [int(node) for node in asked[lost]]
    unsure = ~lost & ~_surely(layout, alone, asked, load)
    for position in np.flatnonzero(unsure).tolist():
        node = int(asked[position])
        mine = np.flatnonzero((layout.primary == node) & board.uses.real)
        single = layout.secondary[mine] == NOWHERE
        lost[position] = not _one_by_one(layout, node, mine[~single], mine[single])
    return [int(node) for node in asked[lost]]


def _surely(layout: Layout, alone: Bools, asked: Ints, load: Floats) -> Bools:
    """For each node whether its instances without mirror fit in whatever order and place.

    A node is full once it has less left than the largest instance needs, of memory or of disk. The
    function counts how many nodes all instances together can fill at most. They fit when a node
    of their group is left.
    """
    board = layout.board
    count = len(board.nodes)
    targets = board.online[:, None] & (board.group_of[:, None] == board.group_of[asked])
    targets[asked, np.arange(len(asked))] = False
    lost = np.zeros(len(asked), dtype=np.int64)
    room = (board.disk_room - layout.used[Use.DISK_ALL])[:, None] - np.zeros_like(load)
    for left, use in (
        (layout.memory_left[:, None] - load, Use.MEMORY_ALL),
        (room, Use.DISK_ALL),
    ):
        sizes, where = board.uses.primary[use][alone], layout.primary[alone]
        total = np.bincount(where, weights=sizes, minlength=count)[asked]
        largest = np.zeros(count)
        np.maximum.at(largest, where, sizes)
        spare = np.maximum(left - largest[asked], 0.0)
        spare = np.sort(np.where(targets, spare, np.inf), axis=0)
        with np.errstate(invalid="ignore"):
            used_up = (np.cumsum(spare, axis=0) <= total).sum(axis=0)
        lost += np.where(largest[asked] > 0, used_up, 0)
    some = np.bincount(layout.primary[alone], minlength=count)[asked] > 0
    sure: Bools = ~some | (lost < targets.sum(axis=0))
    return sure


def _rank(item: Instance) -> tuple[bool, int, int, int, int, tuple[str, ...], str]:
    """The order in which instances find new nodes: the largest first.

    Names come last, so that one more instance fits or not whatever it is called.
    """
    size = (-item.memory, -item.disk, -item.vcpus, -item.spindle_use)
    return (item.mirror is not Mirror.EVERY_NODE, *size, item.tags, item.name)


def _one_by_one(
    layout: Layout,
    node: int,
    mirrored: np.ndarray[tuple[int], np.dtype[np.int64]],
    others: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> bool:
    board = layout.board
    group: Bools = board.group_of == board.group_of[node]
    trial = layout
    for i in mirrored.tolist():
        trial = trial.moved(i, int(trial.secondary[i]), node)
    for i in sorted(others.tolist(), key=lambda i: _rank(board.instances[i])):
        away = trial.moved(i, NOWHERE, NOWHERE)
        seats = Seats(away, board.instances[i], i, soft=False, avoid=node, within=group)
        choice = seats.best_single()
        if choice is None:
            return False
        trial = away.moved(i, choice, NOWHERE)
    return True
