"""Which instances of a dead node are started elsewhere, and why others are not. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti.model import repair_tags
from ganeti.model.config import Config
from ganeti.model.instance import Instance
from ganeti.model.names import AdminState, HaPolicy
from ganeti.model.node import Node
from ganeti.model.recovery import Attempt
from ganeti.model.repair_tags import PREFIX, Type
from ganeti.model.start_order import sort
from ganeti.storage.registry import traits_of


@dataclass(frozen=True)
class Rescue:
    """What becomes of the instances whose primary node died."""

    #: that fail over, in the order in which they start
    failovers: list[Instance]
    #: that stay: name and reason
    left: list[tuple[str, str]]


def plan(config: Config, node: Node, now: float, *, everything: bool) -> Rescue:
    """What to do with the primary instances of a node that is known to be dead.

    ``everything``: also those whose backend parameter ``ha`` or tags do not allow it.
    """
    failovers: list[Instance] = []
    left: list[tuple[str, str]] = []
    for item in sorted(config.primaries.get(node.uuid, []), key=lambda one: one.handle):
        why = _refuse(config, node, item, now, everything=everything)
        if why:
            left.append((item.handle, why))
        else:
            failovers.append(item)
    return Rescue(sort(failovers), left)


def _refuse(config: Config, node: Node, item: Instance, now: float, *, everything: bool) -> str:
    """Why an instance stays where it is; empty when it is to fail over."""
    if item.forthcoming:
        return "it is a reservation"
    if item.admin_state is not AdminState.UP:
        return f"it is marked as {item.admin_state}"
    policy = config.beparams(item).get("ha", HaPolicy.TAGS)
    if policy in (HaPolicy.NONE, HaPolicy.RESTART) and not everything:
        back = ", so it starts when the node is back" if policy == HaPolicy.RESTART else ""
        return f"its backend parameter ha is {policy}{back}"
    alone = sorted(
        {
            str(disk.dev_type)
            for disk in config.disks_of(item)
            if not (traits_of(disk.dev_type).mirrored or traits_of(disk.dev_type).shared)
        }
    )
    if alone:
        return f"its disks ({', '.join(alone)}) are only on that node"
    if everything or policy == HaPolicy.FAILOVER:
        return ""
    levels = [item.tags, config.groups[node.group].tags, config.cluster.tags]
    if any(repair_tags.is_suspended(tags, now) for tags in levels):
        return f"tag {PREFIX}suspend stops automatic repairs"
    most = repair_tags.find_allowed(levels)
    if most is None or most < Type.FAILOVER:
        return f"tag {PREFIX}{Type.FAILOVER.word} is missing on it, its group and the cluster"
    return ""


def count_attempt(before: Attempt | None, node: Node, job: int, now: float) -> Attempt:
    """The record of a job that starts an instance of a dead node elsewhere."""
    number = before.number + 1 if before is not None and belongs(before, node) else 1
    return Attempt(time=now, source=node.uuid, job=job, number=number)


def belongs(attempt: Attempt, node: Node) -> bool:
    """Whether an attempt was made for the last death of a node that was recorded."""
    return attempt.source == node.uuid and node.fenced is not None and attempt.job > node.fenced.job
