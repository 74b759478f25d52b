"""Move a running instance to another node; whatever fails, it runs on exactly one of them.

The record of the target (``here``) is the moment from which the instance is the target's: its copy
runs only after that, and nothing brings the source back then. Until then giving up means that the
target ends first and the source continues. See ``settlement`` for both, and for what a later master
finds.
"""

from __future__ import annotations

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.model.enums import MigrationState
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.base import OpCode
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.planning.migration_verdict import Verdict
from ganeti.ops.steps.relocation import destination, local_disks, migration_disks
from ganeti.ops.steps.relocation.settlement import Settlement
from ganeti.ops.steps.running import metadata, run_rights
from ganeti.ops.steps.storage.disk_progress import STALLED_AFTER
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import MigrationStatus, NodeInstance, RightState

#: Seconds between two lines about the progress.
TELL_EVERY = 10.0
#: Seconds after which the memory of a guest is not sent any longer.
LONGEST = 12 * 3600.0


class Migration:
    """One migration, made by an operation that holds the locks of instance and both nodes."""

    def __init__(
        self,
        ctx: Context,
        instance: Instance,
        target: Node,
        op: OpCode,
        *,
        live: bool,
        sending: local_disks.Sending | None = None,
    ) -> None:
        """``sending``: for disks that are on the source only, how they go to the target."""
        self._ctx = ctx
        self._instance = instance
        self._target = target
        self._source = ctx.config.nodes[instance.primary_node]
        self._op = op
        self._live = live
        self._sending = sending
        self._info: JsonObject = {}

    def run(self) -> None:
        """Do it; blocks as long as it takes.

        Raises:
            OpExecError: it was given up; the text says why, and where the instance is.
            JobCanceled: the user wanted that; the instance runs on the source.
        """
        self._ctx.log(f"* preparing {self._target.name} to accept the instance")
        try:
            self._begin()
            self._follow()
            settlement, found = self._hand_over()
        except errors.GanetiError as err:
            self._give_up(err)
            return
        if found is not Verdict.TARGET:
            self._report_lost(
                settlement, found, "the hypervisor of the target lost it on its arrival"
            )

    def _begin(self) -> None:
        ctx, instance, source, target = self._ctx, self._instance, self._source, self._target
        here = annotate.instance(ctx.config, instance)
        self._info = ctx.rpc.call_one(source, NodeCalls.migration_info, here, self._live)
        # Known at both ends before either does anything, so that no crash can hide it.
        run_rights.record(ctx, source, instance, RightState.LEAVING, target)
        run_rights.record(ctx, target, instance, RightState.ARRIVING, source)
        there = self._wire()
        if self._sending is not None:
            self._info["with_disks"] = True
            local_disks.make(ctx, instance, target)
        migration_disks.prepare(ctx, instance, source, target)
        metadata.offer(ctx, instance, target)
        where = ctx.rpc.call_one(
            target, NodeCalls.accept_instance, there, self._info, target.secondary_ip
        )
        if self._sending is not None:
            local_disks.send(ctx, here, there, self._sending)
        ctx.log(f"* migrating instance to {target.name}")
        ctx.rpc.call_one(
            source,
            NodeCalls.instance_migrate,
            ctx.config.cluster.cluster_name,
            here,
            where,
            self._live,
        )

    def _wire(self) -> NodeInstance:
        """The instance as the target gets it."""
        moved = destination.place_on_node(self._instance, self._target)
        return annotate.instance(self._ctx.config, moved)

    def _follow(self) -> None:
        """Wait until all of the guest is at the target."""
        progress = Progress(self._ctx.clock.monotonic())
        here = annotate.instance(self._ctx.config, self._instance)
        while True:
            found = self._ctx.rpc.call_one(
                self._source, NodeCalls.instance_get_migration_status, here
            )
            if found.status is MigrationState.COMPLETED:
                if found.total_time is not None:
                    self._ctx.log(summary(found))
                return
            if found.status is not MigrationState.ACTIVE:
                reason = f": {found.error}" if found.error else ""
                raise errors.OpExecError(f"the hypervisor gave it up{reason}")
            if self._ctx.job.cancel_asked.is_set():
                raise errors.JobCanceled("the migration was canceled")
            line = progress.make_line(found, self._ctx.clock.monotonic())
            if line is not None:
                self._ctx.log(line)

    def _hand_over(self) -> tuple[Settlement, Verdict]:
        ctx, instance = self._ctx, self._instance
        if not self._live:
            # It is paused anyway, and what is lost now need not be lost.
            ctx.rpc.call_one(self._target, NodeCalls.instance_arrived, self._wire())
        if self._sending is not None:
            # Should the target be lost from here on, the master knows that it may have run the
            # guest, whose newest writes are only there then.
            destination.record(ctx, "instance-move", instance, self._target)
        run_rights.record(ctx, self._target, instance, RightState.HERE)
        # From here on the instance belongs to the target; nothing is taken back.
        ctx.undo.pop_all()
        return self._settle()

    def _settle(self) -> tuple[Settlement, Verdict]:
        """Settle the migration on both nodes after the end, or after a failure."""
        settlement = Settlement(
            self._ctx,
            self._instance,
            self._source,
            self._target,
            self._op,
            info=self._info,
            live=self._live,
        )
        return settlement, settlement.run()

    def _give_up(self, reason: errors.GanetiError) -> None:
        """End it in one of both ways; raises unless the instance turns out to have arrived."""
        ctx, name = self._ctx, self._instance.name
        text = errors.text(reason)
        ctx.log(f"* the migration did not end well: {text}")
        try:
            settlement, found = self._settle()
        except errors.GanetiError as err:
            raise errors.OpExecError(
                f"instance {name} was not migrated: {text}; and {errors.text(err)}"
            ) from reason
        if found is Verdict.TARGET:
            ctx.log(f"* it has arrived on {self._target.name} all the same")
            return
        if isinstance(reason, errors.JobCanceled) and found is Verdict.SOURCE:
            raise reason
        try:
            self._report_lost(settlement, found, text)
        except errors.GanetiError as err:
            raise err from reason

    def _report_lost(self, settlement: Settlement, found: Verdict, text: str) -> None:
        """Log where the instance is after a migration that did not reach the target."""
        ctx, name = self._ctx, self._instance.name
        try:
            settlement.restart(found)
        except errors.GanetiError as err:
            ctx.warn(f"instance {name} could not be started again: {errors.text(err)}")
        where = ctx.config.nodes[ctx.config.instances[self._instance.uuid].primary_node].name
        state = "runs on" if found is Verdict.SOURCE else "ended meanwhile and belongs to"
        raise errors.OpExecError(
            f"instance {name} was not migrated: {text}; it {state} node {where}"
        )


class Progress:
    """Lines about a migration for its user, and an end to one that does not get on. Pure."""

    def __init__(self, now: float) -> None:
        self._begun = now
        self._logged_at = now
        self._moved = now
        self._bytes: int | None = None

    def make_line(self, found: MigrationStatus, now: float) -> str | None:
        """A line, when it is time for one.

        Raises:
            OpExecError: nothing was sent for a long time, or it takes too long.
        """
        done = found.transferred_ram
        # Xen tells no figures; its socat notices silence by itself.
        if done is None or done != self._bytes:
            self._bytes, self._moved = done, now
        if now - self._moved > STALLED_AFTER:
            raise errors.OpExecError(f"nothing was sent for {STALLED_AFTER:.0f} s")
        if now - self._begun > LONGEST:
            raise errors.OpExecError(
                f"it did not end within {LONGEST / 3600:.0f} hours: the guest writes as fast as its"
                " memory is sent; a larger migration_downtime or --non-live helps"
            )
        if now - self._logged_at < TELL_EVERY:
            return None
        self._logged_at = now
        silent = now - self._moved
        return f"* nothing was sent for {silent:.0f} s" if silent >= TELL_EVERY else line(found)


def line(found: MigrationStatus) -> str:
    """One line of progress; percent of the memory that is at the target already."""
    if not found.total_ram:
        return "* memory transfer is going on"
    left = found.remaining_ram
    if left is None:
        left = max(0, found.total_ram - (found.transferred_ram or 0))
    percent = 100 - 100 * min(left, found.total_ram) / found.total_ram
    eta = "" if found.eta is None else f", about {found.eta:.0f} s left"
    return f"* memory transfer progress: {percent:.2f} %{eta}"


def summary(found: MigrationStatus) -> str:
    """Size and time of the transfer; the guest continues when the target has recorded it."""
    sent, seconds = (found.transferred_ram or 0) >> 20, (found.total_time or 0) / 1000
    pause = "" if found.downtime is None else f", paused for {found.downtime} ms of that"
    return f"* memory transferred: {sent} MiB in {seconds:.1f} s{pause}"


def is_live(mode: str | None, live: bool | None, default: str) -> bool:
    """Whether the guest shall go on while it is moved: by mode, by the older form, by default."""
    if mode is not None:
        return mode == "live"
    return default == "live" if live is None else live
