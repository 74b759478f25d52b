"""Choose nodes for an instance that is to be created, and say why when there are none."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ganeti.placement.capacity import Filler, Rules
from ganeti.placement.facts import Cluster, Group, Instance, Mirror
from ganeti.placement.layout import Board, Layout
from ganeti.placement.score import score
from ganeti.placement.seats import Seats

_ORDER = {"preferred": 0, "last_resort": 1}


@dataclass(frozen=True, slots=True)
class Choice:
    """Nodes for an instance (primary first), or none and the reasons by group."""

    nodes: tuple[str, ...]
    group: str
    score: float
    reasons: tuple[str, ...] = ()


def against_policy(cluster: Cluster, group: Group, item: Instance) -> str:
    """Why the policy of a group does not accept an instance; "" when it does."""
    policy = cluster.policy_of(group)
    if item.template not in policy.templates:
        return f"disk template {item.template} is not allowed"
    disks = item.disks or ((item.disk,) if item.disk else ())
    have = {
        "memory": [item.memory],
        "cpus": [item.vcpus],
        "disk": list(disks),
        "disk_count": [len(disks)],
        "nics": [item.nics],
        "spindles": [item.spindle_use],
    }
    why = ""
    for least, most in policy.bounds:
        wrong = [
            f"{name.replace('_', ' ')} {value} is not between "
            f"{getattr(least, name)} and {getattr(most, name)}"
            for name, values in have.items()
            for value in values
            if not getattr(least, name) <= value <= getattr(most, name)
        ]
        if not wrong:
            return ""
        why = why or "; ".join(wrong)
    return why


def choose(
    cluster: Cluster,
    item: Instance,
    *,
    group: str | None = None,
    only: frozenset[str] | None = None,
    survive: bool = True,
) -> Choice:
    """The best place of an instance: preferred groups first, then by score.

    ``group`` is the name or UUID of the only group; ``only`` are the nodes that are allowed.
    """
    reasons = []
    found: list[tuple[int, float, Choice]] = []
    for one in cluster.groups:
        if group not in (None, one.name, one.uuid):
            continue
        rank = _ORDER.get(one.alloc_policy)
        if rank is None and group is None:
            reasons.append(f"group {one.name}: is unallocable")
            continue
        refusal = against_policy(cluster, one, item)
        if refusal:
            reasons.append(f"group {one.name}: {refusal}")
            continue
        layout = Layout.first(Board(cluster, one))
        board = layout.board
        if not board.online.any():
            reasons.append(f"group {one.name}: has no node that is online")
            continue
        within = None
        if only is not None:
            within = np.array([node.name in only for node in board.nodes], dtype=bool)
        filler = Filler(layout, Rules(survive=survive), within)
        done, failures = filler.try_one(item)
        if done is None:
            reasons.append(f"group {one.name}: {explain(layout, item, failures)}")
            continue
        nodes = [board.nodes[done.primary].name]
        if item.mirror is Mirror.SECONDARY:
            nodes.append(board.nodes[done.secondary].name)
        value = score(filler.layout)
        found.append((rank or 0, value, Choice(tuple(nodes), one.name, value)))
    if found:
        return min(found, key=lambda entry: entry[:2])[2]
    if not reasons:
        reasons.append(f"there is no group '{group}'" if group else "there is no group")
    return Choice((), "", 0.0, tuple(reasons))


def explain(layout: Layout, item: Instance, failures: Counter[str]) -> str:
    """What the nodes of a group lack: counts, and per node the missing amount."""
    board = layout.board
    wide = board.with_instances([item])
    seats = Seats(layout.on_board(wide), item, len(wide.instances) - 1)
    parts = []
    for i, node in enumerate(board.nodes):
        if node.offline:
            parts.append(f"{node.name} is offline")
            continue
        missing = lacks(layout, item, i)
        why = missing or seats.primary_failures[i] or seats.secondary_failures[i]
        if why:
            parts.append(f"{node.name} {why}")
    counts = ", ".join(f"{name}: {count}" for name, count in failures.most_common())
    text = "; ".join(parts)
    return " (".join(filter(None, [counts or "too few nodes", text])) + (")" if text else "")


def lacks(layout: Layout, item: Instance, node: int) -> str:
    """The amounts a node does not have for an instance; "" when it has enough of all."""
    board = layout.board
    left = min(layout.memory_left[node], layout.memory_left_all[node])
    parts = []
    if left - item.memory <= 0:
        parts.append(f"needs another {int(item.memory - left) + 1} MiB of memory")
    disk = board.disk_room[node] - layout.used[3][node]
    if item.mirror is not Mirror.EVERY_NODE and disk - item.disk <= 0:
        parts.append(f"needs another {int(item.disk - disk) + 1} MiB of disk")
    cpus = layout.used[5][node] + board.node_cpus[node] + item.vcpus - board.cpu_limit[node]
    if cpus > 0:
        parts.append(f"needs another {int(np.ceil(cpus))} virtual processors")
    return " and ".join(parts)
