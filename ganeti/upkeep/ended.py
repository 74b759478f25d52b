"""Instances whose guests ended a moment ago, and those that can start now, as nodes told.

The node daemon of the master node runs the watcher for them at once. What is done, how often and
when not, is decided by :mod:`ganeti.upkeep.instances`, as in each run; nothing else is checked.
When a node comes up, its whole group is checked, so that instances start in order.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ganeti import errors
from ganeti.model.enums import AdminState, InstanceStatus
from ganeti.upkeep import instances, view
from ganeti.upkeep.round import Round

_LOG = logging.getLogger(__name__)
#: Statuses when the guest has ended and nobody has acted; the second while its node is silent.
_NEEDS_WORK = (
    InstanceStatus.ERROR_DOWN,
    InstanceStatus.ERROR_NODE_DOWN,
    InstanceStatus.USER_DOWN,
)


@dataclass(frozen=True)
class Ended:
    """A report of a node about a guest that ended."""

    node: str
    instance: str

    def __str__(self) -> str:
        return f"{self.node}:{self.instance}"


@dataclass(frozen=True)
class Up:
    """A node whose daemon has begun to serve calls."""

    node: str

    def __str__(self) -> str:
        return f"{self.node}:"


Report = Ended | Up


def run(now: Round, reports: Mapping[Report, int]) -> list[Report]:
    """Submit jobs for what should run. Returns what has to be checked again later.

    ``reports`` has the number of earlier checks.

    Raises:
        GanetiError: the master does not answer.
    """
    up = {each.node: each for each in reports if isinstance(each, Up)}
    ended = {(each.node, each.instance): each for each in reports if isinstance(each, Ended)}
    fresh = {each for each, checks in reports.items() if not checks}
    return [*_start_waiting(now, up), *_treat(now, ended, fresh)]


def _start_waiting(now: Round, up: Mapping[str, Up]) -> list[Up]:
    """Start what can start now that nodes are up."""
    groups = view.load(now.client) if up else []
    groups = [group for group in groups if not up.keys().isdisjoint(group.boots)]
    done = set(instances.treat_all(now, groups))
    # What waits for another node starts when that one tells, or with the regular run.
    waiting = {
        node
        for group in groups
        for item in group.instances
        if item.name not in done and _needs_work(item) and not group.waits_for(item)
        for node in item.nodes
    }
    return [each for node, each in up.items() if node in waiting]


def _treat(
    now: Round, ended: Mapping[tuple[str, str], Ended], fresh: Collection[Report]
) -> list[Ended]:
    """Start instances whose guests ended; the ``fresh`` ones are also events."""
    later: list[Ended] = []
    for group in view.load(now.client, {name for _node, name in ended}) if ended else ():
        found = tuple(item for item in group.instances if (item.primary, item.name) in ended)
        if not found:
            continue
        for item in found:
            if ended[item.primary, item.name] in fresh and _needs_work(item):
                _report_end(now, item)
        done = set(instances.treat(now, replace(group, instances=found)))
        later += [
            ended[item.primary, item.name]
            for item in found
            if item.name not in done and _needs_work(item)
        ]
    return later


def _needs_work(item: view.Instance) -> bool:
    return item.admin_state is AdminState.UP and item.status in _NEEDS_WORK


def _report_end(now: Round, item: view.Instance) -> None:
    """Let those who follow events know."""
    _LOG.info(
        "The guest of %s has ended on node %s: %s", item.name, item.primary, item.status.value
    )
    try:
        now.client.note_guest_end(item.uuid, item.primary, item.status.value)
    except errors.NoMasterError:
        raise
    except errors.GanetiError as err:
        _LOG.warning("no event for %s: %s", item.name, errors.text(err))
