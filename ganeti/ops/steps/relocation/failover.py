"""Fail over: stop an instance on its primary node and start it on another one."""

from __future__ import annotations

from ganeti import errors
from ganeti.model.enums import AdminState, LocalDisk
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.base import OpCode
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.planning import disk_reach
from ganeti.ops.steps.relocation import destination
from ganeti.ops.steps.running import power, run_rights
from ganeti.ops.steps.storage import disks as instance_disks
from ganeti.rpc.calls import NodeCalls


class Failover:
    """One failover, made by an operation that holds the locks of instance and both nodes."""

    def __init__(
        self,
        ctx: Context,
        instance: Instance,
        target: Node,
        op: OpCode,
        *,
        shutdown_timeout: int,
        ignore_consistency: bool,
        ignore_ipolicy: bool,
        start: bool = True,
    ) -> None:
        """``start``: whether an instance that should run is started on the target."""
        self._ctx = ctx
        self._instance = instance
        self.target = target
        self._op = op
        self._timeout = shutdown_timeout
        self._ignore = ignore_consistency
        self._ignore_ipolicy = ignore_ipolicy
        self._starts = start and instance.admin_state is AdminState.UP
        self._source = ctx.config.nodes[instance.primary_node]

    def check(self) -> None:
        """Reads only; OpPrereqError says what stands against it."""
        ctx, instance, target = self._ctx, self._instance, self.target
        destination.check_target(ctx, instance, target, ignore_ipolicy=self._ignore_ipolicy)
        if self._starts:
            memory = ctx.config.beparams(instance)["maxmem"]
            destination.check_memory(ctx, instance, target, memory)
        elif instance.admin_state is not AdminState.UP:
            ctx.log(f"Instance {instance.name} is not marked as running: it will not be started")
        if instance.disks_active:
            self._check_disks()

    def _check_disks(self) -> None:
        """The copy on the target must be complete, or the instance would lose data."""
        ctx, config = self._ctx, self._ctx.config
        if disk_reach.reach(config, self._instance) is not disk_reach.Reach.MIRROR:
            return
        for disk in config.disks_of(self._instance):
            wire = annotate.disk(config, disk, self.target.group)
            status = ctx.rpc.call_one(self.target, NodeCalls.blockdev_find, wire)
            if status is not None and status.ldisk_status == LocalDisk.OKAY:
                continue
            what = "is not active" if status is None else "is not up to date"
            text = f"{disk.iv_name} {what} on node {self.target.name}"
            if not self._ignore:
                raise errors.make_state_error(
                    f"{text}: the newest data of instance {self._instance.name} would be lost"
                    " (--ignore-consistency allows it)"
                )
            ctx.warn(text)

    def run(self) -> None:
        """Do it.

        Raises:
            OpExecError: it could not be stopped for sure, or not be started on the target.
        """
        ctx, instance = self._ctx, self._instance
        self._stop()
        moved = destination.record(ctx, "instance-failover", instance, self.target)
        # From here on the instance belongs to the target; nothing is taken back.
        ctx.undo.pop_all()
        ctx.log(f"* instance {instance.name} belongs to node {self.target.name} now")
        if not self._starts:
            return
        ctx.log(f"* starting the instance on the target node {self.target.name}")
        try:
            # The old primary is the secondary now, and may be what was lost.
            power.start(ctx, moved, self._op, ignore_secondaries=True)
        except errors.GanetiError as err:
            raise errors.OpExecError(
                f"instance {instance.name} was failed over to node {self.target.name} but could"
                f" not be started there: {errors.text(err)}; try gnt-instance startup"
                f" {instance.name}"
            ) from err

    def _stop(self) -> None:
        """See that the source does not run it and never will by an old right."""
        ctx, instance, source = self._ctx, self._instance, self._source
        if source.offline:
            ctx.warn(
                f"primary node {source.name} is marked offline, so it is assumed that"
                " nothing runs there"
            )
            return
        ctx.log(f"* shutting down the instance on the source node {source.name}")
        try:
            power.stop(ctx, instance, self._op, self._timeout)
            if instance.admin_state is AdminState.UP:
                ctx.undo.callback(self._start_again)
            failures = instance_disks.shutdown(ctx, instance)
            if failures:
                raise errors.BlockDeviceError("; ".join(failures))
            run_rights.revoke(ctx, source, instance)
        except errors.GanetiError as err:
            self._refuse_or_warn(err)

    def _refuse_or_warn(self, err: errors.GanetiError) -> None:
        name, source = self._instance.name, self._source.name
        if not self._ignore:
            raise errors.OpExecError(
                f"instance {name} is not started on {self.target.name}, because it may still run"
                f" on {source} ({errors.text(err)}). Switch {source} off, then run gnt-node"
                f" modify --offline yes {source} and repeat the command"
            ) from err
        self._ctx.warn(
            f"instance {name} may still run on {source}: {errors.text(err)}; continuing because"
            " --ignore-consistency was given"
        )

    def _start_again(self) -> None:
        """Undo of the stop; a failure of it is reported, as the first error matters more."""
        ctx = self._ctx
        try:
            if power.query_running(ctx, self._instance) is None:
                ctx.log(f"Starting {self._instance.name} again on node {self._source.name}")
                power.start(ctx, self._instance, self._op)
        except errors.GanetiError as err:
            ctx.warn(f"{self._instance.name} could not be started again: {errors.text(err)}")
