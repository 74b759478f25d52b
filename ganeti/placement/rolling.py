"""Groups of nodes that may be down at the same time, so that a cluster reboots in few steps.

Nodes get in each other's way when the instances of one run on the other, or when both send
instances to the same secondary node and it cannot take all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ganeti.placement.facts import Mirror
from ganeti.placement.layout import Layout
from ganeti.placement.use import NOWHERE, Bools, Use


@dataclass(frozen=True, slots=True)
class Rolling:
    """How nodes are put into groups; ``secondaries``: no node may be down with its mirror."""

    secondaries: bool = False
    #: instances that cannot move go down with their node
    ignore_fixed: bool = False


def find_fixed(layout: Layout) -> Bools:
    """Nodes with instances whose disks are nowhere else."""
    board = layout.board
    stays = np.array([item.mirror is Mirror.NONE for item in board.instances], dtype=bool)
    found = np.zeros(len(board.nodes), dtype=bool)
    found[layout.primary[stays & board.uses.real]] = True
    return found


def find_conflicts(layout: Layout, rolling: Rolling) -> Bools:
    """Whether two nodes cannot be down together: node x node."""
    board = layout.board
    count = len(board.nodes)
    result = np.zeros((count, count), dtype=bool)
    mirrored = (layout.secondary != NOWHERE) & board.uses.real
    first, second = layout.primary[mirrored], layout.secondary[mirrored]
    result[first, second] = result[second, first] = True
    if not rolling.secondaries:
        targets: dict[int, set[int]] = {}
        for p, s in zip(first.tolist(), second.tolist()):
            targets.setdefault(s, set()).add(p)
        for sources in targets.values():
            for one in sources:
                for other in sources:
                    if one != other:
                        result[one, other] = True
    np.fill_diagonal(result, False)
    return result


def groups(layout: Layout, nodes: list[int], rolling: Rolling) -> list[list[int]]:
    """Nodes in groups that may be down together; the most constrained node chooses first.

    Nodes that share storage only limit each other by the memory that is left elsewhere.
    """
    conflict = find_conflicts(layout, rolling)
    colour: dict[int, int] = {}
    open_nodes = set(nodes)
    while open_nodes:
        # The node with the most different groups around it, then with the most neighbours.
        node = max(
            open_nodes,
            key=lambda n: (
                len({colour[m] for m in np.flatnonzero(conflict[n]).tolist() if m in colour}),
                int(conflict[n][nodes].sum()),
                -n,
            ),
        )
        near = {colour[m] for m in np.flatnonzero(conflict[node]).tolist() if m in colour}
        colour[node] = next(c for c in range(len(nodes)) if c not in near)
        open_nodes.remove(node)
    found: dict[int, list[int]] = {}
    for node in sorted(colour):
        found.setdefault(colour[node], []).append(node)
    result = []
    for members in found.values():
        result += _split_by_memory(layout, members, rolling)
    result.sort(key=len, reverse=True)
    return result


def _split_by_memory(layout: Layout, members: list[int], rolling: Rolling) -> list[list[int]]:
    """Split a group until what runs on shared storage, or is made again, fits on the others."""
    parts: list[list[int]] = []
    for node in members:
        for part in parts:
            if fits_elsewhere(layout, [*part, node], rolling):
                part.append(node)
                break
        else:
            parts.append([node])
    return parts


def fits_elsewhere(layout: Layout, down: list[int], rolling: Rolling) -> bool:
    """Whether the instances on shared storage of some nodes fit on the other nodes."""
    board = layout.board
    gone = np.zeros(len(board.nodes), dtype=bool)
    gone[down] = True
    kinds = [Mirror.EVERY_NODE] if rolling.ignore_fixed else [Mirror.EVERY_NODE, Mirror.NONE]
    moves = np.array([item.mirror in kinds for item in board.instances], dtype=bool)
    leaving = np.flatnonzero(moves & gone[layout.primary] & board.uses.real)
    if not len(leaving):
        return True
    left = np.where(board.online & ~gone, layout.memory_left, -np.inf)
    room = np.where(gone, 0.0, board.disk_room - layout.used[Use.DISK_ALL])
    sizes = board.uses.primary[Use.MEMORY, leaving]
    for i in leaving[np.argsort(-sizes, kind="stable")].tolist():
        size, disk = board.uses.primary[Use.MEMORY, i], board.uses.primary[Use.DISK_ALL, i]
        able = (left - size > 0) & ((disk == 0) | (room - disk > 0))
        if not able.any():
            return False
        target = int(np.where(able, left, -np.inf).argmax())
        left[target] -= size
        room[target] -= disk
    return True
