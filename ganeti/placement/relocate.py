"""Move instances off nodes, or to other groups.

All instances of a request are one decision: the largest go first, and each move counts for the
next. Whoever leaves stays within its group; a group changes only when that is requested.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ganeti.base.json_types import JsonObject
from ganeti.placement.board import Board
from ganeti.placement.choose import Chooser, Wish, explain_policy_refusal
from ganeti.placement.facts import Cluster, Group, Instance, Mirror
from ganeti.placement.layout import Layout
from ganeti.placement.move_kinds import Kind, Limits, places_after
from ganeti.placement.moves import Judge
from ganeti.placement.refusal import find_missing
from ganeti.placement.seats import Seats
from ganeti.placement.use import NOWHERE


class Leave(StrEnum):
    """Which of its nodes an instance leaves; the words of allocator requests."""

    PRIMARY = "primary-only"
    SECONDARY = "secondary-only"
    ALL = "all"


class Verb(StrEnum):
    """The kind of one step of a move."""

    #: move the running guest; one that is down, or without its primary node, fails over
    MIGRATE = "migrate"
    FAILOVER = "failover"
    REPLACE_SECONDARY = "replace-secondary"


@dataclass(frozen=True, slots=True)
class Step:
    """One step; ``node`` is the new secondary node, or where to move ("": the mirror)."""

    verb: Verb
    node: str = ""


@dataclass(frozen=True, slots=True)
class Relocation:
    """One instance that gets other nodes: what they are then, and the steps there."""

    name: str
    group: str
    nodes: tuple[str, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Relocations:
    """Instances that move, in this order, and those that cannot (with the reason)."""

    moved: tuple[Relocation, ...]
    failed: tuple[tuple[str, str], ...]


def wire_step(name: str, step: Step) -> JsonObject:
    """A step as the opcode that an allocator's answer names."""
    if step.verb is Verb.REPLACE_SECONDARY:
        return {
            "OP_ID": "OP_INSTANCE_REPLACE_DISKS",
            "instance_name": name,
            "mode": "replace_new_secondary",
            "disks": [],
            "remote_node": step.node,
        }
    target = {"target_node": step.node} if step.node else {}
    if step.verb is Verb.FAILOVER:
        return {"OP_ID": "OP_INSTANCE_FAILOVER", "instance_name": name, **target}
    return {
        "OP_ID": "OP_INSTANCE_MIGRATE",
        "instance_name": name,
        "allow_failover": True,
        "allow_runtime_changes": False,
        "ignore_hvversions": True,
        **target,
    }


def _order(items: Collection[Instance]) -> list[Instance]:
    """Reservations first, as they move for free and leave room; then the largest."""
    return sorted(items, key=lambda i: (not i.forthcoming, -i.memory, -i.disk, i.name))


def _split_known(
    cluster: Cluster, names: Sequence[str]
) -> tuple[list[Instance], list[tuple[str, str]]]:
    every = {item.name: item for item in cluster.instances}
    found = [every[name] for name in dict.fromkeys(names) if name in every]
    return found, [(name, "is not known") for name in names if name not in every]


# off nodes ---------------------------------------------------------------------------------------


def nodes_to_empty(cluster: Cluster, names: Sequence[str], mode: Leave) -> frozenset[str]:
    """The nodes that a request wants empty, when it does not say: those that all instances have.

    Without one that all have: every node that one of them would leave.
    """
    chosen = []
    for item in _split_known(cluster, names)[0]:
        primary = {item.primary} if mode is not Leave.SECONDARY else set()
        secondary = {item.secondary} if mode is not Leave.PRIMARY else set()
        chosen.append({node for node in primary | secondary if node})
    if not chosen:
        return frozenset()
    shared = frozenset.intersection(*map(frozenset, chosen))
    return shared or frozenset().union(*chosen)


def evacuate(
    cluster: Cluster,
    names: Sequence[str],
    mode: Leave,
    leave: frozenset[str] | None = None,
    *,
    ignore_soft: bool = False,
    in_order: bool = False,
) -> Relocations:
    """Moves off the nodes ``leave``; nothing new comes to them.

    The largest are placed first, or with ``in_order`` the first of the names.

    N+1, exclusion tags and ratios hold after each move; where a node is offline or drained and
    nothing else is left, they may break, and always with ``ignore_soft``.
    """
    items, failed = _split_known(cluster, names)
    away = nodes_to_empty(cluster, names, mode) if leave is None else leave
    groups = {group.uuid: group for group in cluster.groups}
    group_of = {node.name: groups.get(node.group) for node in cluster.nodes}
    layouts: dict[str, Layout] = {}
    moved: list[Relocation] = []
    for item in items if in_order else _order(items):
        group = group_of.get(item.primary)
        if group is None:
            failed.append((item.name, "has no node"))
            continue
        if group.uuid not in layouts:
            layouts[group.uuid] = Layout.from_board(Board(cluster, group))
        found = _leave(layouts[group.uuid], item, mode, away, ignore_soft=ignore_soft)
        if isinstance(found, str):
            failed.append((item.name, found))
            continue
        layouts[group.uuid], nodes, steps = found
        moved.append(Relocation(item.name, group.name, nodes, steps))
    return Relocations(tuple(moved), tuple(failed))


Found = tuple[Layout, tuple[str, ...], tuple[Step, ...]]


def _leave(
    layout: Layout, item: Instance, mode: Leave, away: frozenset[str], *, ignore_soft: bool
) -> Found | str:
    kinds = _kinds(item, mode, away)
    if isinstance(kinds, str):
        return kinds
    index = layout.board.instance_index[item.name]
    ways = [Limits(closed=away, ignore_soft=ignore_soft, strict=not ignore_soft)]
    if not ignore_soft:
        ways.append(Limits(closed=away))
    for limits in ways:
        judge = Judge(layout, limits)
        best = _choose_best(judge, kinds, index, away)
        if best is not None:
            kind, target = best
            primary, secondary = places_after(layout, kind, index, target)
            steps = steps_of(layout, item, kind, target)
            after = layout.move(index, primary, secondary)
            return after, tuple(filter(None, after.place(index))), steps
    if mode is Leave.ALL and {item.primary, item.secondary} <= away:
        found = _choose_both(layout, item, index, away)
        if found is not None:
            return found
    return _explain_refusal(layout, item, away)


def _kinds(item: Instance, mode: Leave, away: frozenset[str]) -> tuple[Kind, ...] | str:
    """Kinds of relocation of an instance, that with the fewest steps first; or why none is left."""
    if item.mirror is Mirror.NONE:
        return f"its disks are on one node (template {item.template}); see gnt-instance move"
    if item.mirror is Mirror.EVERY_NODE:
        if mode is Leave.SECONDARY:
            return f"it has no secondary node (template {item.template})"
        return (Kind.TO_ANY,)
    if not item.secondary:
        return "it has no secondary node"
    if mode is Leave.SECONDARY or (mode is Leave.ALL and item.primary not in away):
        return (Kind.REPLACE_SECONDARY,)
    if mode is Leave.PRIMARY:
        return (Kind.TO_SECONDARY,)
    if item.secondary in away:
        return ()
    return (Kind.TO_SECONDARY_REPLACE, Kind.REPLACE_PRIMARY)


def _choose_best(
    judge: Judge, kinds: tuple[Kind, ...], index: int, away: frozenset[str]
) -> tuple[Kind, int] | None:
    board, layout = judge.board, judge.layout
    rows = np.array([index], dtype=np.int64)
    for kind in kinds:
        second = int(layout.secondary[index])
        through_second = kind in (
            Kind.TO_SECONDARY,
            Kind.TO_SECONDARY_REPLACE,
            Kind.REPLACE_PRIMARY,
        )
        if through_second and (not board.online[second] or board.nodes[second].name in away):
            continue
        scores = judge.scores(kind, rows)[0]
        if not scores.size:
            continue
        at = int(np.argmin(scores))
        if np.isfinite(scores[at]):
            return kind, NOWHERE if kind is Kind.TO_SECONDARY else int(judge.targets[at])
    return None


def _choose_both(layout: Layout, item: Instance, index: int, away: frozenset[str]) -> Found | None:
    """Two new nodes for a mirrored instance that leaves both of its own."""
    emptied_layout = layout.move(index, NOWHERE, NOWHERE)
    board = layout.board
    within = np.array([node.name not in away for node in board.nodes], dtype=bool)
    best = Seats(emptied_layout, item, index, within=within).find_best()
    if best is None:
        return None
    primary, secondary, _ = best
    names = board.nodes[primary].name, board.nodes[secondary].name
    steps = _plan_pair(board.cluster, item, *names)
    after = emptied_layout.move(index, primary, secondary)
    return after, tuple(filter(None, after.place(index))), steps


def _move(cluster: Cluster, item: Instance, node: str = "") -> Step:
    """A live migration unless the guest's node is offline, else a failover."""
    alive = any(
        one.name == item.primary and (one.drained or not one.offline) for one in cluster.nodes
    )
    return Step(Verb.MIGRATE if alive else Verb.FAILOVER, node)


def steps_of(layout: Layout, item: Instance, kind: Kind, target: int) -> tuple[Step, ...]:
    """The steps of one kind of move to a node (index)."""
    board = layout.board
    name = board.nodes[target].name if target != NOWHERE else ""
    replace = Step(Verb.REPLACE_SECONDARY, name)
    if kind is Kind.TO_ANY:
        return (_move(board.cluster, item, name),)
    if kind is Kind.REPLACE_SECONDARY:
        return (replace,)
    move = _move(board.cluster, item)
    if kind is Kind.TO_SECONDARY:
        return (move,)
    if kind is Kind.TO_SECONDARY_REPLACE:
        return (move, replace)
    if kind is Kind.REPLACE_TO_SECONDARY:
        return (replace, move)
    # after the first step it runs on its old secondary node, which is well
    return (move, replace, Step(Verb.MIGRATE))


def _plan_pair(cluster: Cluster, item: Instance, primary: str, secondary: str) -> tuple[Step, ...]:
    """Two other nodes; one complete copy stays until another is there."""
    first, second = Step(Verb.REPLACE_SECONDARY, primary), Step(Verb.REPLACE_SECONDARY, secondary)
    move = _move(cluster, item)
    if move.verb is Verb.FAILOVER:
        return (move, first, Step(Verb.MIGRATE), second)
    return (first, move, second)


def _explain_refusal(layout: Layout, item: Instance, away: frozenset[str]) -> str:
    """The amounts that other nodes do not have for it."""
    board = layout.board
    index = board.instance_index[item.name]
    emptied_layout = layout.move(index, NOWHERE, NOWHERE)
    only = None
    if item.mirror is Mirror.SECONDARY and item.secondary not in away:
        only = {item.secondary}
    parts = []
    for i, node in enumerate(board.nodes):
        if node.name in away or (only is not None and node.name not in only):
            continue
        if not board.online[i]:
            parts.append(f"{node.name} is offline, drained or does not answer")
            continue
        missing = find_missing(emptied_layout, item, i)
        if missing:
            parts.append(f"{node.name} needs another {' and '.join(m.text for m in missing)}")
    return "; ".join(parts) or "no other node of its group can take it without breaking a rule"


# to other groups ---------------------------------------------------------------------------------


def change_group(
    cluster: Cluster,
    names: Sequence[str],
    targets: Collection[str] = (),
    *,
    survive: bool = True,
) -> Relocations:
    """Moves to other groups (uuids); without ``targets`` to any but its own."""
    items, failed = _split_known(cluster, names)
    group_of = {node.name: node.group for node in cluster.nodes}
    moved: list[Relocation] = []
    choosers: dict[str, Chooser] = {}
    for item in _order(items):
        own = group_of.get(item.primary)
        if item.mirror is Mirror.NONE:
            reason = f"its disks are on one node (template {item.template}); see gnt-instance move"
            failed.append((item.name, reason))
            continue
        goals = [
            group
            for group in cluster.groups
            if group.uuid != own and (not targets or group.uuid in targets)
        ]
        if not goals:
            failed.append((item.name, "there is no other group that it may go to"))
            continue
        key = own or ""
        if key not in choosers:
            choosers[key] = Chooser(_limit_to_groups(cluster, goals, targets), survive=survive)
        home = next((group for group in cluster.groups if group.uuid == own), None)
        # What its own group's policy does not accept either is no reason.
        known = home is not None and bool(explain_policy_refusal(cluster, home, item))
        unplaced = dataclasses.replace(item, primary="", secondary="")
        choice = choosers[key].choose(Wish(unplaced, ignore_policy=known))
        if not choice.nodes:
            failed.append((item.name, choice.reason))
            continue
        steps = _way(cluster, item, choice.nodes)
        moved.append(Relocation(item.name, choice.group, choice.nodes, steps))
    return Relocations(tuple(moved), tuple(failed))


def _limit_to_groups(cluster: Cluster, goals: Sequence[Group], named: Collection[str]) -> Cluster:
    """Only these groups; those that are named take instances whatever their policy is."""
    opened = tuple(
        dataclasses.replace(group, alloc_policy="last_resort")
        if group.uuid in named and group.alloc_policy == "unallocable"
        else group
        for group in goals
    )
    return dataclasses.replace(cluster, groups=opened)


def _way(cluster: Cluster, item: Instance, nodes: tuple[str, ...]) -> tuple[Step, ...]:
    if len(nodes) == 1:
        return (_move(cluster, item, nodes[0]),)
    return _plan_pair(cluster, item, *nodes)
