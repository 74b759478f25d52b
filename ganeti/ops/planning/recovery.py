"""Which instances of a dead node are started elsewhere, and why others are not. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ganeti.base.text import plural
from ganeti.config.failover_policy import explain_staying
from ganeti.model.config import Config
from ganeti.model.enums import AdminState
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.model.params import BackendParams
from ganeti.model.recovery import Attempt
from ganeti.model.start_order import sort


@dataclass(frozen=True)
class Rescue:
    """The plan for the instances whose primary node died."""

    #: that fail over, in the order in which they start
    failovers: list[Instance]
    #: instances that stay: name and reason
    left: list[tuple[str, str]]
    #: instances whose job waits or runs
    starting: list[Instance]


def plan(
    config: Config,
    node: Node,
    now: float,
    *,
    everything: bool,
    has_ended: Callable[[int], bool],
) -> Rescue:
    """Plan what happens to the primary instances of a node that is known to be dead.

    ``everything``: also those whose backend parameters or tags do not allow it. ``has_ended``:
    whether a job is over.
    """
    failovers: list[Instance] = []
    left: list[tuple[str, str]] = []
    starting: list[Instance] = []
    for item in sorted(config.primaries.get(node.uuid, []), key=lambda one: one.handle):
        if is_starting(item, node, has_ended):
            starting.append(item)
            continue
        reason = _refuse(config, node, item, now, everything=everything)
        if reason:
            left.append((item.handle, reason))
        else:
            failovers.append(item)
    return Rescue(sort(failovers), left, starting)


def _refuse(config: Config, node: Node, item: Instance, now: float, *, everything: bool) -> str:
    """Why an instance stays where it is; empty when it is to fail over."""
    if item.forthcoming:
        return "it is a reservation"
    if item.admin_state is not AdminState.UP:
        return f"it is marked as {item.admin_state}"
    reason = explain_staying(config, item, now, everything=everything)
    if reason or everything:
        return reason
    attempt = find_attempt(item, node)
    most = config.beparams(item).get("ha_attempts", BackendParams().ha_attempts)
    if attempt is not None and attempt.number >= most:
        return f"it was tried {plural(attempt.number, 'time')}, the last time by job {attempt.job}"
    return ""


def is_starting(item: Instance, node: Node, has_ended: Callable[[int], bool]) -> bool:
    """Whether a job starts an instance of a node elsewhere, or is about to submit one that does.

    It may do so before the death of the node is recorded.
    """
    attempt = item.recovery
    return attempt is not None and attempt.source == node.uuid and not has_ended(attempt.job)


def count_attempt(item: Instance, node: Node, job: int, now: float) -> Attempt:
    """The record of a job that starts an instance of a dead node elsewhere.

    ``job``: the one that fences the node, until it has submitted that which starts the instance.
    """
    before = find_attempt(item, node)
    number = 1 if before is None else before.number + 1
    return Attempt(time=now, source=node.uuid, job=job, number=number)


def find_attempt(item: Instance, node: Node) -> Attempt | None:
    """The attempt that was made for the last death of a node; None without one."""
    attempt, fenced = item.recovery, node.fenced
    if attempt is None or attempt.source != node.uuid:
        return None
    return attempt if fenced is not None and attempt.job > fenced.job else None
