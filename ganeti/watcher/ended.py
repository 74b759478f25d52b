"""Instances whose guests ended a moment ago, and those that can start now, as nodes told.

The node daemon of the master node runs the watcher for them at once. What is done, how often and
when not, is decided by :mod:`ganeti.watcher.instances`, as in each run; nothing else is checked.
When a node comes up, its whole group is checked, so that instances start in order.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ganeti import errors
from ganeti.model.names import AdminState, InstanceStatus
from ganeti.watcher import instances, view
from ganeti.watcher.round import Round

_LOG = logging.getLogger(__name__)
#: What it is when its guest has ended and nobody has acted; the second while its node is silent.
_UNSETTLED = (
    InstanceStatus.ERROR_DOWN,
    InstanceStatus.ERROR_NODE_DOWN,
    InstanceStatus.USER_DOWN,
)


@dataclass(frozen=True)
class Ended:
    """What a node told."""

    node: str
    instance: str
    #: whether it was checked before
    again: bool = False

    def __str__(self) -> str:
        return f"{self.node}:{self.instance}"


@dataclass(frozen=True)
class Up:
    """A node whose daemon has begun to serve calls."""

    node: str

    def __str__(self) -> str:
        return f"{self.node}:"


Told = Ended | Up


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options for what nodes told."""
    for name, text in (
        ("now", "the guest of this instance has ended on this node"),
        ("again", "the same, checked before"),
    ):
        parser.add_argument(
            f"--ended-{name}",
            action="append",
            default=[],
            metavar="NODE:INSTANCE",
            help=f"{text}: do nothing but to start it if it should run (for the node daemon)",
        )
    parser.add_argument(
        "--up",
        action="append",
        default=[],
        metavar="NODE",
        help="this node is up: do nothing but to start what should run in its group (for the node"
        " daemon)",
    )


def read_options(options: argparse.Namespace) -> list[Told]:
    """What the command line names."""
    return [Up(node) for node in options.up] + [
        Ended(node, name, again)
        for again, texts in ((False, options.ended_now), (True, options.ended_again))
        for node, _colon, name in (text.partition(":") for text in texts)
    ]


def run(now: Round, told: Iterable[Told]) -> list[Told]:
    """Submit jobs for what should run. Returns what has to be checked again later.

    Raises:
        GanetiError: the master does not answer.
    """
    told = list(told)
    up = {each.node: each for each in told if isinstance(each, Up)}
    ended = {(each.node, each.instance): each for each in told if isinstance(each, Ended)}
    return [*_start_waiting(now, up), *_treat(now, ended)]


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
        if item.name not in done and _is_unsettled(item) and not group.waits_for(item)
        for node in item.nodes
    }
    return [each for node, each in up.items() if node in waiting]


def _treat(now: Round, ended: Mapping[tuple[str, str], Ended]) -> list[Ended]:
    """Start instances whose guests ended."""
    later: list[Ended] = []
    for group in view.load(now.client, {name for _node, name in ended}) if ended else ():
        found = tuple(item for item in group.instances if (item.primary, item.name) in ended)
        if not found:
            continue
        for item in found:
            _report_end(now, ended[item.primary, item.name], item)
        done = set(instances.treat(now, replace(group, instances=found)))
        later += [
            ended[item.primary, item.name]
            for item in found
            if item.name not in done and _is_unsettled(item)
        ]
    return later


def _is_unsettled(item: view.Instance) -> bool:
    return item.admin_state is AdminState.UP and item.status in _UNSETTLED


def _report_end(now: Round, told: Ended, item: view.Instance) -> None:
    """Let those who follow events know, once."""
    if told.again or not _is_unsettled(item):
        return
    _LOG.info("The guest of %s has ended on node %s: %s", item.name, told.node, item.status.value)
    try:
        now.client.note_guest_end(item.uuid, told.node, item.status.value)
    except errors.NoMasterError:
        raise
    except errors.GanetiError as err:
        _LOG.warning("no event for %s: %s", item.name, errors.text(err))
