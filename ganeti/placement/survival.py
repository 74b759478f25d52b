"""Whether the instances of a node have somewhere to go when the node fails.

Mirrored instances start on their secondary nodes; those on shared storage, and those that have to
be made again, go to the best node of the group, one after the other.
"""

from __future__ import annotations

import numpy as np

from ganeti.placement.facts import Mirror
from ganeti.placement.layout import NOWHERE, Floats, Layout, Use
from ganeti.placement.seats import Seats


def failing(layout: Layout) -> list[int]:
    """The nodes whose instances have nowhere to go."""
    return [node for node in range(len(layout.board.nodes)) if not survives(layout, node)]


def mirrored_load(layout: Layout) -> Floats:
    """Memory that (row) has to take over when (column) fails."""
    board, count = layout.board, len(layout.board.nodes)
    both = (layout.primary != NOWHERE) & (layout.secondary != NOWHERE) & board.real
    cell = layout.secondary[both] * count + layout.primary[both]
    memory = board.primary_use[Use.MEMORY_ALL][both]
    total: Floats = np.bincount(cell, weights=memory, minlength=count * count).astype(float)
    return total.reshape(count, count)


def survives(layout: Layout, node: int) -> bool:
    """Whether everything that runs on a node has somewhere else to go."""
    board = layout.board
    mine = np.flatnonzero((layout.primary == node) & board.real)
    count = len(board.nodes)
    if not len(mine):
        return True
    memory = board.primary_use[Use.MEMORY_ALL]
    left = layout.memory_left.copy()
    mirrored = mine[layout.secondary[mine] != NOWHERE]
    take = np.bincount(layout.secondary[mirrored], weights=memory[mirrored], minlength=count)
    hit = take > 0
    if (left[hit] - take[hit] <= 0).any() or not board.online[hit].all():
        return False
    others = mine[layout.secondary[mine] == NOWHERE]
    if not len(others):
        return True
    targets = board.online & (board.group_of == board.group_of[node])
    targets[node] = False
    room = board.disk_room - layout.used[Use.DISK_ALL]
    left = (left - take)[targets]
    if _surely((left, room[targets]), (memory[others], board.primary_use[Use.DISK_ALL, others])):
        return True
    return _one_by_one(layout, node, mirrored, others)


def _surely(left: tuple[Floats, Floats], sizes: tuple[Floats, Floats]) -> bool:
    """Whether instances fit in whatever order and place they are put.

    What is left of memory and disk is given by node, the sizes by instance. A node is of no use
    any more once less than the largest size is left; it counts how many nodes all instances
    together can bring there at most.
    """
    nodes = len(left[0])
    lost = 0
    for room, size in zip(left, sizes):
        largest, total = float(size.max()), float(size.sum())
        if largest:
            spare = np.sort(np.maximum(room - largest, 0.0))
            lost += int((np.cumsum(spare) <= total).sum())
    return lost < nodes


def _one_by_one(
    layout: Layout,
    node: int,
    mirrored: np.ndarray[tuple[int], np.dtype[np.int64]],
    others: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> bool:
    board = layout.board
    trial = layout
    for i in mirrored.tolist():
        trial = trial.moved(i, int(trial.secondary[i]), node)
    order = sorted(
        others.tolist(),
        key=lambda i: (board.instances[i].mirror is not Mirror.EVERY_NODE, -i),
    )
    for i in order:
        away = trial.moved(i, NOWHERE, NOWHERE)
        choice = Seats(away, board.instances[i], i, soft=False, avoid=node).best_single()
        if choice is None:
            return False
        trial = away.moved(i, choice, NOWHERE)
    return True
