"""Instances that should run are started again, and disks of nodes that booted are activated.

An instance that does not come up is tried five times, then it is left to a person for eight hours.
While one of its nodes does not answer it is not tried.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ganeti import errors
from ganeti.base import files
from ganeti.model.enums import AdminState, AdminStateSource, InstanceStatus
from ganeti.model.start_order import get_order, limit_reason, with_dependencies
from ganeti.upkeep import memory as memory_file
from ganeti.upkeep.memory import MAX_ATTEMPTS, RETRY_AFTER, Kind, Memory, Stored
from ganeti.upkeep.round import Round
from ganeti.upkeep.view import Group, Instance

_LOG = logging.getLogger(__name__)
#: Summary of an opcode about one instance.
_OF_INSTANCE = re.compile(r"INSTANCE_[A-Z_]+\(([^()]+)\)")
_DOWN = (InstanceStatus.ERROR_DOWN, InstanceStatus.ERROR_NODE_DOWN)


@dataclass(frozen=True)
class Action:
    """One job, and the attempt that it counts as, if it does."""

    op: Mapping[str, Any]
    name: str
    reason: str
    kind: Kind | None = None
    #: of an instance that is started: where, and in which order
    node: str = ""
    order: int = 0


def run(now: Round) -> None:
    """Submit jobs for all groups and remember them.

    Raises:
        GanetiError: the master did not take a job; the next run tries again.
    """
    treat_all(now, now.groups)


def treat_all(now: Round, groups: Iterable[Group]) -> Sequence[str]:
    """Submit jobs for whole groups and remember them; names of instances with no more to do.

    Raises:
        GanetiError: the master did not take a job; the next run tries again.
    """
    finished: list[str] = []
    refused: list[str] = []

    def act(group: Group, stored: Stored) -> None:
        memory = stored.memory
        memory.keep_only(item.name for item in group.instances)
        done, others = _submit(now, _find_due(now, group, memory), stored)
        refused.extend(others)
        finished.extend([*done, *_list_given_up(group, memory)])
        memory.boots.update({name: boot for name, boot in group.boots.items() if boot is not None})

    for group in groups:
        _with_memory(now, group, act)
    if refused:
        raise errors.GenericError(f"jobs were not accepted: {'; '.join(refused)}")
    return finished


def treat(now: Round, group: Group) -> Sequence[str]:
    """Submit jobs for the given instances of a group only; names of those with no more to do.

    The others wait: for a job that works on them, or as they were tried a moment ago.

    Raises:
        GanetiError: the master does not answer.
    """
    finished: list[str] = []

    def act(group: Group, stored: Stored) -> None:
        due = _find_due(now, group, stored.memory)
        done, refused = _submit(now, [action for action in due if action.kind is not None], stored)
        for text in refused:
            _LOG.warning("The job was not accepted: %s", text)
        finished.extend([*done, *_list_given_up(group, stored.memory)])

    _with_memory(now, group, act)
    return finished


def _with_memory(now: Round, group: Group, act: Callable[[Group, Stored], None]) -> None:
    """Act with the memory of a group, and record what was done.

    One at a time: the regular run and that for guests that ended may meet.
    """
    path = now.paths.watcher_state(group.uuid)
    with files.FileLock(now.paths.watcher_memory_lock).hold():
        stored = Stored(path, memory_file.load(path))
        stored.memory.drop_old(now.clock.now())
        try:
            act(group, stored)
        finally:
            stored.save()


def _find_due(now: Round, group: Group, memory: Memory) -> list[Action]:
    """The actions that are due in a group now."""
    actions = decide(group, memory, now.clock.now())
    return _drop_locked(now, _drop_recent(now, actions, memory))


def _list_given_up(group: Group, memory: Memory) -> Iterator[str]:
    for item in group.instances:
        if any(memory.count(kind, item.name) >= MAX_ATTEMPTS for kind in Kind):
            yield item.name


def all_run(groups: Iterable[Group]) -> bool:
    """Whether all instances that should run did so when the master was asked."""
    return not any(
        item.admin_state is AdminState.UP and item.status in _DOWN
        for group in groups
        for item in group.instances
    )


def decide(group: Group, memory: Memory, moment: float) -> Iterator[Action]:
    """The actions that a group needs; updates the memory of instances that are well.

    ``moment`` is now (Unix time).
    """
    booted = {
        name
        for name, boot in group.boots.items()
        if boot is not None and memory.boots.get(name, boot) != boot
    }
    for instance in group.instances:
        if instance.status is InstanceStatus.ERROR_DOWN:
            yield from _restart(instance, group, memory)
            continue
        if memory.forget(Kind.RESTART, instance.name, moment):
            _LOG.info("Instance %s runs again", instance.name)
        if _was_stopped_inside(instance):
            yield from _clean_up(instance, memory)
            continue
        memory.forget(Kind.CLEANUP, instance.name, moment)
        where = [name for name in instance.nodes if name in booted]
        if where and instance.disks_active and group.all_answer(instance):
            reason = f"node {', '.join(where)} was rebooted"
            yield Action(activate_disks(instance), instance.name, reason)


def activate_disks(instance: Instance) -> Mapping[str, Any]:
    """The opcode that makes the disks of an instance usable again."""
    return {"OP_ID": "OP_INSTANCE_ACTIVATE_DISKS", **identify(instance)}


def _restart(instance: Instance, group: Group, memory: Memory) -> Iterator[Action]:
    silent = group.waits_for(instance)
    if silent:
        _LOG.warning(
            "Instance %s is down; it is started when node %s answers. If that node is dead, mark it"
            " with 'gnt-node modify --offline=yes', then it is started without it",
            instance.name,
            ", ".join(silent),
        )
        return
    count = memory.count(Kind.RESTART, instance.name)
    if count >= MAX_ATTEMPTS:
        _LOG.error(
            "Instance %s is down and was started %s times without success; start it with"
            " 'gnt-instance startup %s' when the cause is removed",
            instance.name,
            count,
            instance.name,
        )
        return
    op = {"OP_ID": "OP_INSTANCE_STARTUP", **identify(instance)}
    reason = "the instance should run and is down"
    order = get_order(instance.tags)
    yield Action(op, instance.name, reason, Kind.RESTART, instance.primary, order)


def _was_stopped_inside(instance: Instance) -> bool:
    """Whether a user stopped it from inside, and that is not recorded yet."""
    return instance.status is InstanceStatus.USER_DOWN and instance.admin_state is AdminState.UP


def _clean_up(instance: Instance, memory: Memory) -> Iterator[Action]:
    if memory.count(Kind.CLEANUP, instance.name) >= MAX_ATTEMPTS:
        _LOG.error("Instance %s was stopped by its user and cannot be cleaned up", instance.name)
        return
    op = {
        "OP_ID": "OP_INSTANCE_SHUTDOWN",
        **identify(instance),
        "admin_state_source": AdminStateSource.USER.value,
        "force": True,
    }
    reason = "the user of the instance stopped it"
    yield Action(op, instance.name, reason, Kind.CLEANUP)


def identify(instance: Instance) -> dict[str, str]:
    """The parameters of an opcode that name an instance."""
    return {"instance_name": instance.name, "instance_uuid": instance.uuid}


def _drop_recent(now: Round, actions: Iterable[Action], memory: Memory) -> list[Action]:
    """Without what was tried a moment ago, when runs come more often than usual."""
    moment = now.clock.now()

    def is_recent(action: Action) -> bool:
        if action.kind is None:
            return False
        return 0 <= moment - memory.find_last(action.kind, action.name) < RETRY_AFTER

    due = []
    for action in actions:
        if is_recent(action):
            _LOG.info("Instance %s was tried a moment ago; it waits", action.name)
        else:
            due.append(action)
    return due


def _drop_locked(now: Round, actions: list[Action]) -> list[Action]:
    """Without instances that a job works on or waits for: what it does may be the cure."""
    if not actions:
        return []
    found = now.client.query("lock", ["name", "mode", "pending"], None)
    locks = {name for (_s, name), (_m, mode), (_p, pending) in found.data if mode or pending}
    busy = {name.removeprefix("instance/") for name in locks if name.startswith("instance/")}
    busy |= _find_queued(now)
    for name in sorted(busy & {action.name for action in actions}):
        _LOG.info("A job works on instance %s, or waits to; left to the next run", name)
    return [action for action in actions if action.name not in busy]


def _find_queued(now: Round) -> set[str]:
    """Instances of jobs that have no locks yet, such as starts that wait for earlier ones."""
    waiting = ["|", *(["=", "status", status] for status in ("queued", "waiting"))]
    found = now.client.query("job", ["summary"], waiting)
    texts = [text for [(_status, summary)] in found.data for text in summary or ()]
    return {match[1] for match in map(_OF_INSTANCE.fullmatch, texts) if match is not None}


def _make_opcodes(now: Round, actions: Sequence[Action]) -> list[Mapping[str, Any]]:
    """The opcodes of actions; starts, which come last, wait for those of earlier orders."""
    ops = []
    for action in actions:
        texts = [action.reason]
        if action.node:
            texts.append(limit_reason("starts", action.node, now.options.parallel))
        ops.append({**action.op, "reason": now.reason(*texts)})
    first = next((index for index, action in enumerate(actions) if action.node), len(ops))
    orders = [action.order for action in actions[first:]]
    return [*ops[:first], *with_dependencies(ops[first:], orders)]


def _submit(
    now: Round, actions: list[Action], stored: Stored
) -> tuple[Sequence[str], Sequence[str]]:
    """Submit the jobs; names of their instances, and the refusals.

    Attempts are on disk before the master knows of them: whoever sees their effect finds them.
    """
    starts = sorted((item for item in actions if item.node), key=lambda item: item.order)
    actions = [*(item for item in actions if not item.node), *starts]
    accepted = stored.memory.copy()
    moment = now.clock.now()
    for action in actions:
        _note(stored.memory, action, moment)
    stored.save()
    try:
        answers = now.submit(_make_opcodes(now, actions))
    finally:
        stored.memory.attempts = accepted.attempts
    done, refused = [], []
    for action, submitted in zip(actions, answers):
        if submitted.job_id is None:
            refused.append(f"{action.name}: {submitted.error}")
            continue
        what = action.op["OP_ID"].removeprefix("OP_INSTANCE_").lower()
        _LOG.info("%s %s (%s): job %s", what, action.name, action.reason, submitted.job_id)
        _note(stored.memory, action, moment)
        done.append(action.name)
    return done, refused


def _note(memory: Memory, action: Action, moment: float) -> None:
    if action.kind is not None:
        memory.note(action.kind, action.name, moment)
