"""Whether the instances of a node have somewhere to go when the node fails.

Mirrored instances start on their secondary nodes; those on shared storage, and those that have to
be made again, go to other nodes of the group, the largest first.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ganeti.placement.layout import Layout
from ganeti.placement.use import NOWHERE, Bools, Floats, Ints, Use


def list_failing(layout: Layout) -> list[int]:
    """The nodes whose instances have nowhere to go."""
    if layout.stuck is None:
        layout.stuck = tuple(_search_failing(layout, np.ones(len(layout.board.nodes), dtype=bool)))
    return list(layout.stuck)


def find_failing(layout: Layout, among: Bools) -> int | None:
    """One of the nodes ``among`` whose instances have nowhere to go; None when there is none."""
    return next(_search_failing(layout, among), None)


def survives(layout: Layout, node: int) -> bool:
    """Whether everything that runs on a node has somewhere else to go."""
    only = np.zeros(len(layout.board.nodes), dtype=bool)
    only[node] = True
    return find_failing(layout, only) is None


def _search_failing(layout: Layout, among: Bools) -> Iterator[int]:
    """The nodes whose instances have nowhere to go, those first that take the least work."""
    board = layout.board
    here = board.uses.real & (layout.primary != NOWHERE)
    busy = np.zeros(len(board.nodes), dtype=bool)
    busy[layout.primary[here]] = True
    asked = np.flatnonzero(busy & among)
    if not len(asked):
        return
    load = layout.mirrored[:, asked]
    short: Bools = (load > 0) & ((layout.memory_left[:, None] - load <= 0) | ~board.online[:, None])
    lost: Bools = np.array(short.any(axis=0), dtype=bool)
    yield from asked[lost].tolist()
    alone = here & (layout.secondary == NOWHERE)
    if not alone.any():
        return
    for node in asked[~lost & ~_find_sure(layout, alone, asked, load)].tolist():
        if not _fit_elsewhere(layout, node, np.flatnonzero(here & (layout.primary == node))):
            yield node


def _find_sure(layout: Layout, alone: Bools, asked: Ints, load: Floats) -> Bools:
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
        if not sizes.any():
            continue
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


def _fit_elsewhere(layout: Layout, node: int, rows: Ints) -> bool:
    """Whether the instances ``rows`` of a node find places one after the other.

    The mirrored ones start on their secondary nodes. Of the others the largest go first, as in an
    evacuation, each to the node with the most memory left.
    """
    board, uses, count = layout.board, layout.board.uses, len(layout.board.nodes)
    second = layout.secondary[rows]
    mirrored, alone = rows[second != NOWHERE], rows[second == NOWHERE]
    at = layout.secondary[mirrored]

    def left_of(left: Floats, use: Use) -> Floats:
        needs = np.bincount(at, weights=uses.primary[use][mirrored], minlength=count)
        after: Floats = left - needs
        return after

    memory = left_of(layout.memory_left, Use.MEMORY)
    memory_all = left_of(layout.memory_left_all, Use.MEMORY_ALL)
    disk = board.disk_room - layout.used[Use.DISK_ALL]
    own = board.own_spindle_room - layout.used[Use.OWN_SPINDLES_ALL]
    able = board.online & (board.group_of == board.group_of[node])
    able[node] = False
    sizes = uses.primary[:, alone].T
    for i in np.lexsort((-sizes[:, Use.DISK_ALL], -sizes[:, Use.MEMORY_ALL])).tolist():
        size = sizes[i]
        need = size[Use.MEMORY_ALL]
        fits = able & (np.minimum(memory, memory_all) > need)
        if size[Use.DISK_ALL]:
            fits &= (disk > size[Use.DISK_ALL]) & (
                ~board.exclusive | (own >= size[Use.OWN_SPINDLES_ALL])
            )
        if not fits.any():
            return False
        best = int(np.argmax(np.where(fits, memory, -np.inf)))
        memory[best] -= size[Use.MEMORY]
        memory_all[best] -= need
        disk[best] -= size[Use.DISK_ALL]
        own[best] -= size[Use.OWN_SPINDLES_ALL]
    return True
