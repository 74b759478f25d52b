"""The state of recovery from the death of nodes; from memory, no node is called.

The answer of QueryRecovery is an object:

``time``, ``paused_until``
    Seconds since 1970; the second is null when recovery does not pause.
``watcher_paused_until``
    The same of the watcher: while it pauses, no node is fenced either.
``fence_after``, ``failover_after``
    Seconds of silence after which a node is fenced, and the master replaced; null for never.
``role``
    Where a store holds the role of the master: ``store``, ``term``, ``lease_left`` (seconds until
    this master must have renewed it), ``problem`` (why it cannot; or empty) and ``chooses`` (the
    store makes the next master by itself). Null where the nodes vote.
``nodes``
    For each node ``node``, ``role``, ``silence``, ``lease_left``, ``watchdog`` (see
    :class:`ganeti.master.node_leases.View`), ``proofs`` (what can prove its death, in the order in
    which it is tried), ``next`` (what happens to it by itself) and ``fenced``: ``time``, ``proof``
    and ``over`` of its last death, or null.
``instances``
    For each instance of a dead node, and each that was started elsewhere since: ``instance``,
    ``source``, ``state`` (a :class:`State`), ``node`` (where it is now), ``attempts``, ``job``,
    ``time`` and ``reason``.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING

from ganeti import errors
from ganeti.base import units
from ganeti.base.json_types import JsonObject
from ganeti.base.text import natural_key
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.enums import AdminState, MasterVote
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.notify import notices
from ganeti.ops.planning import recovery
from ganeti.recovery.ladder import list_devices

if TYPE_CHECKING:
    from ganeti.master.core import Core
    from ganeti.master.node_leases import View
    from ganeti.master.role_keeper import RoleKeeper


#: Seconds since the last answer after which a node counts as silent here.
_RECENT = 15.0


class State(StrEnum):
    """The state of an instance of a dead node."""

    #: it belongs to another node now
    RECOVERED = "recovered"
    #: its job waits or runs
    STARTING = "starting"
    #: its last job failed
    FAILED = "failed"
    #: nothing is done with it
    LEFT = "left"
    #: no node has room for it, or it was not tried yet
    WAITING = "waiting"


def describe(core: Core) -> JsonObject:
    """The answer of QueryRecovery."""
    config, now = core.store.current, core.clock.now()
    cluster = config.cluster
    nodes = sorted(config.nodes.values(), key=lambda node: natural_key(node.name))
    role = core.mastership.keeper
    return {
        "time": now,
        "paused_until": cluster.find_recovery_pause(now),
        "watcher_paused_until": core.facts.watcher_pause(),
        "fence_after": cluster.auto_fence_after,
        "failover_after": cluster.auto_failover_after,
        "role": None if role is None else _describe_role(core, role),
        "nodes": [_describe_node(core, config, node, now) for node in nodes],
        "instances": list(find_instances(core, config, now)),
    }


def _describe_role(core: Core, keeper: RoleKeeper) -> JsonObject:
    held = keeper.role.held
    return {
        "store": keeper.role.store.name,
        "term": None if held is None else held.claim.term,
        "lease_left": None if held is None else held.acts_until - core.clock.monotonic(),
        "problem": keeper.problem,
        "chooses": core.store.current.cluster.master_vote is MasterVote.PACEMAKER,
    }


# nodes -------------------------------------------------------------------------------------------


def _describe_node(core: Core, config: Config, node: Node, now: float) -> JsonObject:
    view = core.node_leases.describe(node.uuid)
    calls = not node.offline and node.uuid != config.cluster.master_node
    proofs = _list_proofs(config, node, view)
    return {
        "node": node.name,
        "role": str(node.role(config.cluster.master_node)),
        "silence": view.silence if calls else None,
        "lease_left": view.lease_left if calls else None,
        "watchdog": view.watchdog,
        "proofs": proofs,
        "next": _explain_next(core, config, node, view, proofs),
        "fenced": None if node.fenced is None else base.to_wire(node.fenced),
    }


def _list_proofs(config: Config, node: Node, view: View) -> list[str]:
    devices = list_devices(config.ndparams(node))
    found = [f"{rung.value} {name}" for rung, name in devices.items()]
    return ["end of its lease and watchdog", *found] if view.watchdog else found


def _explain_next(core: Core, config: Config, node: Node, view: View, proofs: list[str]) -> str:
    """The next steps for a node that stays silent, in words."""
    if node.offline:
        return "is offline, since its death was proven" if node.is_proven_dead else "is offline"
    if node.uuid == config.cluster.master_node:
        return "is the master"
    if not config.cluster.auto_fence_after:
        return "is not fenced by itself: auto_fence_after is not set"
    if config.cluster.find_recovery_pause(core.clock.now()) is not None:
        return "is not fenced: recovery pauses"
    if core.facts.watcher_pause() is not None:
        return "is not fenced: the watcher pauses"
    if not proofs:
        return "is never fenced: nothing can prove its death"
    if view.fenced_in is None:
        return "is not watched yet"
    when = f"is fenced in {units.format_duration(max(0.0, view.fenced_in))} by {proofs[0]}"
    if view.may_boot:
        return f"may be booting; {when}"
    if view.silence is not None and view.silence < _RECENT:
        return f"answers; when silent, it is fenced by {proofs[0]}"
    return when


# instances ---------------------------------------------------------------------------------------


def find_instances(core: Core, config: Config, now: float) -> Iterator[JsonObject]:
    """The states of instances of nodes that are dead, or were when they were fenced last."""
    ended = core.queue.has_ended
    for node in config.nodes.values():
        if not node.is_proven_dead:
            continue
        found = recovery.plan(config, node, now, everything=False, has_ended=ended)
        for name, why in found.left:
            item = config.find_by_handle(name)
            if item is not None:
                yield _make_row(config, item, node, State.LEFT, why)
        for item in found.starting:
            yield _make_row(config, item, node, State.STARTING, "")
        for item in found.failovers:
            yield _make_row(config, item, node, *_judge(core, item, node))
    for item in config.instances.values():
        source = None if item.recovery is None else config.nodes.get(item.recovery.source)
        if source is None or source.uuid == item.primary_node:
            continue
        if recovery.find_attempt(item, source) is not None:
            yield _make_row(config, item, source, State.RECOVERED, "")


def find_wanted_instances(core: Core, config: Config, now: float) -> Iterator[JsonObject]:
    """The instances of :func:`find_instances` that are marked as running."""
    for row in find_instances(core, config, now):
        item = config.find_by_handle(row["instance"])
        if item is not None and not item.forthcoming and item.admin_state is AdminState.UP:
            yield row


def _judge(core: Core, item: Instance, node: Node) -> tuple[State, str]:
    """The state of an instance that may start elsewhere and did not yet, and why."""
    attempt = recovery.find_attempt(item, node)
    missing = core.late_starts.roomless.get(node.uuid, {}).get(item.handle)
    if missing is not None:
        return State.WAITING, f"no room: {missing}"
    if attempt is None:
        return State.WAITING, "it is tried within a minute"
    try:
        story = core.queue.view(notices.read_story, attempt.job)
    except errors.JobLost:
        return State.FAILED, f"job {attempt.job} is no longer known"
    return State.FAILED, story.error or f"job {attempt.job} was canceled"


def _make_row(
    config: Config, item: Instance, source: Node, state: State, reason: str
) -> JsonObject:
    attempt = recovery.find_attempt(item, source)
    return {
        "instance": item.handle,
        "source": source.name,
        "state": str(state),
        "node": config.nodes[item.primary_node].name,
        "attempts": 0 if attempt is None else attempt.number,
        "job": None if attempt is None else attempt.job,
        "time": None if attempt is None else attempt.time,
        "reason": reason,
    }
