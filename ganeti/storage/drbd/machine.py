"""The states that a device may be in, and the steps between them. Pure.

A device is three things at once: its lower disk, its link to the peer, its role. The table
:data:`STEPS` says which step changes what, and from where it is allowed; :func:`steps_to` finds
the shortest way through it. Whether the peer answers is not a part: no step changes it.

A part that is ``FOREIGN`` belongs to something else. Only two steps lead away from it: giving up
a foreign link, and taking a foreign *secondary* device down. So a device that somebody writes to
is never taken over, and two instances' disks are never connected to each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from ganeti import errors
from ganeti.storage.drbd.states import Connection, DiskState, Live, Role, Setup, Wish


class Disk(StrEnum):
    """The lower disk of a minor."""

    ABSENT = "not configured"
    DISKLESS = "without disk"
    ATTACHED = "attached"
    FOREIGN = "in use by another disk"


class Link(StrEnum):
    """The link to the peer."""

    ALONE = "not connected"
    PAIRED = "connected"
    DUAL = "connected for two primaries"
    FOREIGN = "connected to another peer"


class State(NamedTuple):
    disk: Disk
    link: Link
    role: Role


class Step(StrEnum):
    """A step of work on a device; each is a command or two of the version in use."""

    NEW = "new"
    ATTACH = "attach"
    DETACH = "detach"
    CONNECT = "connect"
    CONNECT_DUAL = "connect for two primaries"
    DISCONNECT = "disconnect"
    ALLOW_TWO = "allow two primaries"
    FORBID_TWO = "forbid two primaries"
    PROMOTE = "primary"
    DEMOTE = "secondary"
    DOWN = "down"


ABSENT = State(Disk.ABSENT, Link.ALONE, Role.SECONDARY)
#: The minor is set up for the disk.
OWN = frozenset({Disk.DISKLESS, Disk.ATTACHED})
_ANY_LINK = frozenset(Link)
_CONNECTED = frozenset({Link.PAIRED, Link.DUAL})
_ALONE = frozenset({Link.ALONE})
_ANY_ROLE = frozenset({Role.PRIMARY, Role.SECONDARY})
_SECONDARY = frozenset({Role.SECONDARY})
_PRIMARY = frozenset({Role.PRIMARY})


@dataclass(frozen=True)
class Rule:
    """A step is allowed from any combination of these parts, and sets those that are given."""

    step: Step
    disks: frozenset[Disk]
    links: frozenset[Link]
    roles: frozenset[Role]
    disk: Disk | None = None
    link: Link | None = None
    role: Role | None = None

    def apply(self, state: State) -> State | None:
        """The state after the step; None when it is not allowed."""
        if (
            state.disk not in self.disks
            or state.link not in self.links
            or state.role not in self.roles
        ):
            return None
        return State(self.disk or state.disk, self.link or state.link, self.role or state.role)


_DISKLESS, _ATTACHED = frozenset({Disk.DISKLESS}), frozenset({Disk.ATTACHED})

STEPS: tuple[Rule, ...] = (
    Rule(Step.NEW, frozenset({Disk.ABSENT}), _ALONE, _SECONDARY, disk=Disk.DISKLESS),
    Rule(Step.ATTACH, _DISKLESS, _ANY_LINK, _ANY_ROLE, disk=Disk.ATTACHED),
    Rule(Step.DETACH, _ATTACHED, _ANY_LINK, _ANY_ROLE, disk=Disk.DISKLESS),
    Rule(Step.CONNECT, OWN, _ALONE, _ANY_ROLE, link=Link.PAIRED),
    Rule(Step.CONNECT_DUAL, OWN, _ALONE, _ANY_ROLE, link=Link.DUAL),
    Rule(Step.DISCONNECT, OWN, _ANY_LINK - _ALONE, _ANY_ROLE, link=Link.ALONE),
    Rule(Step.ALLOW_TWO, OWN, frozenset({Link.PAIRED}), _ANY_ROLE, link=Link.DUAL),
    Rule(Step.FORBID_TWO, OWN, frozenset({Link.DUAL}), _ANY_ROLE, link=Link.PAIRED),
    Rule(Step.PROMOTE, _ATTACHED, _ANY_LINK, _SECONDARY, role=Role.PRIMARY),
    Rule(Step.PROMOTE, _DISKLESS, _CONNECTED, _SECONDARY, role=Role.PRIMARY),
    Rule(Step.DEMOTE, OWN, _ANY_LINK, _PRIMARY, role=Role.SECONDARY),
    Rule(Step.DOWN, OWN | {Disk.FOREIGN}, _ANY_LINK, _SECONDARY, Disk.ABSENT, Link.ALONE),
)


def classify(setup: Setup | None, live: Live, wish: Wish) -> State:
    """The state of a minor, seen from the disk that should own it."""
    if setup is None:
        return ABSENT
    role = live.role if live.role is not Role.UNKNOWN else Role.SECONDARY
    disk, link = _disk(setup, wish), _link(setup, wish)
    if disk is Disk.DISKLESS and link is Link.FOREIGN:
        # Neither data nor peer are ours: somebody else's device that lost its disk.
        disk = Disk.FOREIGN
    return State(disk, link, role)


def _disk(setup: Setup, wish: Wish) -> Disk:
    if setup.data is None:
        return Disk.DISKLESS
    if (setup.data, setup.meta) == (wish.data, wish.meta):
        return Disk.ATTACHED
    # The kernel keeps the names that it was given; a volume that was renamed meanwhile shows a
    # name that leads nowhere. Peer and secret then tell whose it is.
    renamed = not Path(setup.data).exists()
    return Disk.ATTACHED if renamed and _has_same_link(setup, wish) else Disk.FOREIGN


def _link(setup: Setup, wish: Wish) -> Link:
    if setup.remote is None:
        return Link.ALONE
    if not _has_same_link(setup, wish):
        return Link.FOREIGN
    return Link.DUAL if setup.two_primaries else Link.PAIRED


def _has_same_link(setup: Setup, wish: Wish) -> bool:
    wanted = (wish.local, wish.remote, wish.secret)
    return (setup.local, setup.remote, setup.secret) == wanted


def steps_to(start: State, reached: Callable[[State], bool]) -> tuple[Step, ...] | None:
    """The fewest steps to a state that will do; None when no way leads there."""
    todo: deque[tuple[State, tuple[Step, ...]]] = deque([(start, ())])
    seen = {start}
    while todo:
        state, way = todo.popleft()
        if reached(state):
            return way
        for rule in STEPS:
            after = rule.apply(state)
            if after is not None and after not in seen:
                seen.add(after)
                todo.append((after, (*way, rule.step)))
    return None


def plan(
    start: State,
    *,
    disk: Disk | None = None,
    links: frozenset[Link] | None = None,
    role: Role | None = None,
) -> tuple[Step, ...]:
    """Steps to a state with these parts; a part that is not given stays, or does not matter.

    A role that is not requested is never changed, except that what is taken down is secondary.

    Raises:
        BlockDeviceError: a device of somebody else that is in use is in the way.
    """
    keep = start.role if role is None and disk is not Disk.ABSENT else role

    def is_reached(state: State) -> bool:
        return (
            (disk is None or state.disk is disk)
            and (links is None or state.link in links)
            and (keep is None or state.role is keep)
        )

    if start.disk is Disk.FOREIGN and role is None:
        keep = None  # the role of somebody else's device is not ours to keep
    way = steps_to(start, is_reached)
    if way is None:
        raise errors.BlockDeviceError(
            f"the device is {start.disk}, {start.link} and {start.role.lower()}"
        )
    return way


# what is wrong ------------------------------------------------------------------------------


class Trouble(NamedTuple):
    """A state that needs the administrator: its name, and the command that repairs it."""

    name: str
    text: str
    repair: str


SPLIT_BRAIN = Trouble(
    "split brain",
    "both sides were written to while they were apart, or the peer does not belong to this"
    " disk; nothing is thrown away by itself",
    "gnt-instance replace-disks -s INSTANCE  (keeps the primary's data, recreates the secondary)",
)
STANDALONE = Trouble(
    "alone",
    "the device does not try to connect to its peer",
    "gnt-instance activate-disks INSTANCE",
)
WAITING = Trouble(
    "peer away",
    "the peer does not answer: the node is down, the network is cut, or the disk is not active"
    " there",
    "gnt-instance activate-disks INSTANCE  (when the other node is up)",
)
DISKLESS = Trouble(
    "no disk",
    "the disk below this side failed or was detached; a primary works on the peer's disk",
    "gnt-instance replace-disks -a INSTANCE",
)
PEER_DISKLESS = Trouble(
    "peer without disk",
    "the disk below the other side failed or was detached",
    "gnt-instance replace-disks -a INSTANCE",
)
UNUSABLE = Trouble(
    "old data",
    "the data of this side is not complete or not current, and no resync is running",
    "gnt-instance activate-disks INSTANCE",
)
PAUSED = Trouble(
    "resync paused",
    "the resync was paused and continues only after resume-sync",
    "drbdsetup resume-sync MINOR  (on both nodes)",
)
TWO_PRIMARIES = Trouble(
    "two primaries",
    "both sides may be written to, as during a live migration",
    "gnt-instance migrate --cleanup INSTANCE",
)
FOREIGN = Trouble(
    "minor taken",
    "the minor is used by a device that is not in the configuration",
    "drbdsetup secondary MINOR && drbdsetup down RESOURCE  (when nothing needs it)",
)


def find_fault(live: Live) -> Trouble | None:
    """Find the trouble of a device that should be mirrored; None when it is, or will be soon."""
    if not live.disk.has_disk:
        return DISKLESS
    if live.connection is Connection.STANDALONE:
        return STANDALONE
    if not live.connection.has_peer:
        return WAITING
    if live.role is Role.PRIMARY and live.peer_role is Role.PRIMARY:
        return TWO_PRIMARIES
    if live.connection.is_paused:
        return PAUSED
    if live.connection.is_resync:
        return None
    if not live.peer_disk.has_disk:
        return PEER_DISKLESS
    usable = (DiskState.UP_TO_DATE, DiskState.CONSISTENT, DiskState.ATTACHING)
    if live.disk not in (*usable, DiskState.NEGOTIATING):
        return UNUSABLE
    return None
