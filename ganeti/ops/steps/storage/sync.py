"""Waiting until the copies of mirrored disks are the same, and saying how far they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.model.disk import Disk
from ganeti.model.enums import LocalDisk
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.steps.storage import disks as instance_disks
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import BlockDevStatus

#: Seconds between two questions to the primary node: least and most.
SHORTEST, LONGEST = 0.5, 30.0
#: A part of the time that the node expects after which it is asked again.
_OF_ESTIMATE = 0.25
#: Seconds a disk may be degraded without synchronising before it counts as broken: the two sides
#: need a moment to find each other.
SETTLE = 15.0
#: Seconds without any progress after which the wait ends.
STALLED = 900.0
#: Failed calls in a row after which the wait ends, and seconds between them: a node daemon may be
#: restarted meanwhile.
_FAILED_CALLS, _RETRY = 6, 5.0
#: Percent, or else seconds, between two lines about the same disk.
_STEP, _SILENCE = 1.0, 60.0


class Outcome(Enum):
    """How a wait ended."""

    SYNCED = "in sync"
    #: a copy is missing and nothing is on its way
    DEGRADED = "degraded"
    #: the daemon is being stopped; the disks go on by themselves
    LEFT = "not waited for"


@dataclass(frozen=True)
class State:
    """State of the synchronisation of all disks at one time."""

    #: names of disks that are being synchronised -> percent done, 0 when the node does not say
    running: dict[str, float]
    #: names of disks that miss a copy and are not being synchronised
    degraded: tuple[str, ...]
    #: names of disks whose data on the node that was asked is not good
    faulty: tuple[str, ...] = ()
    #: longest time left in seconds, None: not known
    left: float | None = None

    @property
    def done(self) -> bool:
        return not self.running and not self.degraded


def judge(names: Sequence[str], found: Sequence[BlockDevStatus]) -> State:
    """The state of disks from what a node says of them. Pure."""
    running: dict[str, float] = {}
    degraded: list[str] = []
    faulty: list[str] = []
    estimates: list[float] = []
    for name, status in zip(names, found):
        if status.ldisk_status == LocalDisk.FAULTY:
            faulty.append(name)
        if status.sync_percent is not None:
            running[name] = status.sync_percent
            if status.estimated_time is not None:
                estimates.append(float(status.estimated_time))
        elif status.is_degraded:
            degraded.append(name)
    return State(running, tuple(degraded), tuple(faulty), max(estimates, default=None))


def pause(state: State) -> float:
    """Seconds until it makes sense to look again. Pure."""
    if not state.running or state.left is None:
        return SHORTEST
    return min(LONGEST, max(SHORTEST, state.left * _OF_ESTIMATE))


def wait(
    ctx: Context,
    instance: Instance,
    disks: Sequence[Disk] | None = None,
    *,
    only_begin: bool = False,
) -> Outcome:
    """Wait until all mirrored disks of an instance (or those given) have their copies.

    With ``only_begin`` it is enough that every copy is being made.

    One call to the primary node at a time, with pauses of half a second to half a minute that
    follow its own estimate. Ends at once when the daemon is being stopped, after 15 seconds when
    a disk is degraded and nothing is on its way, after a quarter of an hour without progress.

    Raises:
        OpExecError: the node does not answer any more.
    """
    wanted = ctx.config.disks_of(instance) if disks is None else disks
    mirrored = [disk for disk in wanted if instance_disks.traits(disk).mirrored]
    if not mirrored:
        return Outcome.SYNCED
    if not only_begin:
        ctx.log(f"- INFO: Waiting for instance {instance.name} to sync disks")
    outcome = _Watch(ctx, instance, mirrored, only_begin=only_begin).run()
    if outcome is Outcome.SYNCED:
        ctx.log(f"- INFO: Instance {instance.name}'s disks are in sync")
    return outcome


def query_state(ctx: Context, instance: Instance, disks: Sequence[Disk]) -> State:
    """The state of mirrored disks now, as the primary node sees them; raises what it says."""
    node = ctx.config.nodes[instance.primary_node]
    wire = [annotate.disk(ctx.config, disk, node.group) for disk in disks]
    found = ctx.rpc.call_one(node, NodeCalls.blockdev_getmirrorstatus, wire)
    return judge([disk.iv_name for disk in disks], found)


def faulty(ctx: Context, node: Node, disks: Sequence[Disk]) -> list[str]:
    """Names of mirrored disks without good data on a node.

    Raises:
        OpPrereqError: the node cannot say.
    """
    wire = [annotate.disk(ctx.config, disk, node.group) for disk in disks]
    answers = ctx.rpc.call_one(node, NodeCalls.blockdev_getmirrorstatus_multi, wire)
    found: list[str] = []
    for disk, (ok, status) in zip(disks, answers):
        if not ok or isinstance(status, str):
            raise errors.make_state_error(
                f"the state of {disk.iv_name} on node {node.name} is not known: {status};"
                " see gnt-instance activate-disks"
            )
        if status.ldisk_status == LocalDisk.FAULTY:
            found.append(disk.iv_name)
    return found


class _Watch:
    """One wait."""

    def __init__(
        self, ctx: Context, instance: Instance, disks: Sequence[Disk], *, only_begin: bool
    ) -> None:
        self._only_begin = only_begin
        self._ctx = ctx
        self._instance = instance
        self._disks = disks
        self._sizes = {disk.iv_name: disk.size for disk in disks}
        self._failed = 0
        #: when something last moved
        self._moved: tuple[dict[str, float], float] = ({}, ctx.clock.monotonic())
        #: since when disks are degraded and nothing is on its way
        self._degraded_since: float | None = None
        #: disk -> percent and time of the last line about it
        self._logged: dict[str, tuple[float, float]] = {}

    def run(self) -> Outcome:
        while True:
            state = self._query_state()
            if state is not None:
                if state.done:
                    return Outcome.SYNCED
                self._report(state)
                if self._only_begin and not state.degraded:
                    return Outcome.LEFT
                if self._is_broken(state) or self._is_stalled(state):
                    return Outcome.DEGRADED
            if self._ctx.job.cancel_asked.wait(_RETRY if state is None else pause(state)):
                return Outcome.LEFT
            if self._ctx.job.stop_requested():
                self._ctx.warn("the master daemon is being stopped; the disks continue to sync")
                return Outcome.LEFT

    def _query_state(self) -> State | None:
        """The state now, None when the node did not answer this time."""
        try:
            state = query_state(self._ctx, self._instance, self._disks)
        except errors.GanetiError as err:
            self._failed += 1
            if self._failed >= _FAILED_CALLS:
                raise errors.OpExecError(
                    f"the disks of {self._instance.name} cannot be watched any more:"
                    f" {errors.text(err)}"
                ) from err
            self._ctx.warn(f"no news of the disks, trying again: {errors.text(err)}")
            return None
        self._failed = 0
        return state

    def _report(self, state: State) -> None:
        """A line for each disk that has moved, or was not spoken of for a minute."""
        now = self._ctx.clock.monotonic()
        for name, percent in state.running.items():
            before, then = self._logged.get(name, (percent, None))
            if then is not None and percent - before < _STEP and now - then < _SILENCE:
                continue
            text = f"- device {name}: {percent:5.2f}% done, "
            text += (
                "no time estimate"
                if state.left is None
                else f"{state.left:.0f}s remaining (estimated)"
            )
            if then is not None and now > then:
                text += f", {(percent - before) / 100 * self._sizes[name] / (now - then):.1f} MiB/s"
            self._ctx.log(text)
            self._logged[name] = (percent, now)

    def _is_broken(self, state: State) -> bool:
        if state.running or not state.degraded:
            self._degraded_since = None
            return False
        now = self._ctx.clock.monotonic()
        if self._degraded_since is None:
            self._degraded_since = now
        if now - self._degraded_since < SETTLE:
            return False
        self._ctx.warn(f"{join_names(state.degraded)} of {self._instance.name} are degraded")
        return True

    def _is_stalled(self, state: State) -> bool:
        now = self._ctx.clock.monotonic()
        if state.running != self._moved[0]:
            self._moved = (state.running, now)
        if now - self._moved[1] < STALLED:
            return False
        self._ctx.warn(f"the disks of {self._instance.name} have not moved for {STALLED:.0f} s")
        return True
