"""Copy the disks and the settings of an instance to a node, or its disks to another cluster.

The guest is stopped while its disks are frozen, and runs again while the copies of that moment are
read. Disks that cannot be frozen are read while it stays down. On the node that gets it the
export has another name until its last byte is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import msgspec

from ganeti import errors
from ganeti.base import files
from ganeti.base.json_types import JsonObject
from ganeti.locking.levels import LockLevel
from ganeti.model.disk import Disk
from ganeti.model.image import Image
from ganeti.model.node import Node
from ganeti.net.cluster_trust import DiskPlace
from ganeti.opcodes.backup import OpBackupExport
from ganeti.opcodes.enums import ExportMode
from ganeti.ops import annotate, locks
from ganeti.ops import hooks as hook_env
from ganeti.ops.operation import Finding, FindingOperation, Hooks
from ganeti.ops.planning import checks, export_request, os_images
from ganeti.ops.steps import exports, installing, removal
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import disks as instance_disks
from ganeti.ops.steps.storage import dumps
from ganeti.ops.targets.instance import PlannedInstanceOperation
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import ImportExportOptions, NodeDisk

#: End of the name of an export that is being made, see ``node/exports.py``.
_UNFINISHED = ".new"


@dataclass(frozen=True)
class _Remote:
    """The other cluster."""

    key_name: str
    ca_pem: str
    places: Sequence[DiskPlace]


@dataclass(frozen=True)
class _Plan:
    source: Node
    #: None: to another cluster
    target: Node | None
    remote: _Remote | None
    disks: Sequence[Disk]
    running: bool
    #: what the helper guest that zeroes free space is started from, if it is asked for
    zeroing: Image | str | None
    #: variables of the instance for hooks, also when it is removed
    env: Mapping[str, object]


class BackupExport(
    FindingOperation[OpBackupExport, Node | None, tuple[bool, list[bool]]],
    PlannedInstanceOperation[OpBackupExport, _Plan, tuple[bool, list[bool]]],
):
    """Returns whether it is complete, and the same of each disk; a failure raises."""

    cancelable = True

    @classmethod
    def check_submission(cls, op: OpBackupExport) -> None:
        export_request.check_options(op)

    def find(self) -> Finding[Node | None]:
        yield from self.lock_instance()
        config, op = self.ctx.config, self.op
        target = None
        if op.mode is ExportMode.LOCAL:
            target = config.node(op.target_node_uuid or str(op.target_node))
        nodes = locks.storage_nodes(config, self.instance)
        wanted = {*nodes, self.instance.primary_node, *([target.uuid] if target else [])}
        yield from self.lock_nodes(wanted, storage=True)
        return target

    def decide(self) -> _Plan:
        ctx, op, config, target = self.ctx, self.op, self.ctx.config, self.found
        source = power.primary(ctx, self.instance)
        disks = config.disks_of(self.instance)
        export_request.check_compression(config, op.compress)
        remote = None
        if target is None:
            secret = files.read_text(ctx.paths.domain_secret).strip()
            remote = _Remote(*export_request.check_remote(op, secret, len(disks)))
        else:
            checks.check_usable(target, "to keep an export")
        running = power.query_running(ctx, self.instance) is not None
        export_request.check_frozen(disks, running=running, shutdown=op.shutdown)
        if op.remove_instance:
            checks.all_online(
                [config.nodes[uuid] for uuid in locks.storage_nodes(config, self.instance)],
                f"to remove the disks of instance {self.instance.name}",
            )
        env = hook_env.instance_env(config, self.instance)
        zeroing = None
        if op.zero_free_space:
            zeroing = os_images.find_helper(config, self.instance.real_hypervisor, "zeroing_image")
        return _Plan(source, target, remote, disks, running, zeroing, env)

    def hooks(self) -> Hooks:
        config, op, plan = self.ctx.config, self.op, self.plan
        env = dict(plan.env)
        env.update(
            EXPORT_MODE=str(op.mode),
            EXPORT_NODE="" if plan.target is None else plan.target.name,
            EXPORT_DO_SHUTDOWN=op.shutdown,
            SHUTDOWN_TIMEOUT=op.shutdown_timeout,
            REMOVE_INSTANCE=str(op.remove_instance),
        )
        nodes = [config.cluster.master_node, self.instance.primary_node]
        if plan.target is not None:
            nodes.append(plan.target.uuid)
        return Hooks("instance-export", "INSTANCE", env, nodes, nodes)

    # run ---------------------------------------------------------------------------------

    def run(self) -> tuple[bool, list[bool]]:
        ctx, plan = self.ctx, self.plan
        if plan.target is not None:
            # what an export left that was cut off
            self._remove_unfinished(plan.target)
        not_started: list[str] = []
        try:
            with ExitStack() as stop:
                self._stop(stop, not_started)
                with self._activate(), self._zero_and_freeze() as copies:
                    if all(copy is not None for copy in copies):
                        stop.close()
                    if not self.op.remove_instance:
                        ctx.release(LockLevel.NODE_RES)
                    self._transfer(copies)
        except errors.GanetiError:
            if plan.target is not None:
                self._remove_unfinished(plan.target, only_warn=True)
            raise
        finally:
            self._forget_key()
        if plan.target is not None:
            self._finish(plan.target)
        if self.op.remove_instance:
            self._remove()
        if not_started:
            raise errors.OpExecError(
                f"the export is complete, but instance {self.instance.name} was not started"
                f" again: {not_started[0]}"
            )
        return True, [True] * len(plan.disks)

    def _remove_unfinished(self, target: Node, *, only_warn: bool = False) -> None:
        name = f"{self.instance.name}{_UNFINISHED}"
        try:
            self.ctx.rpc.call_one(target, NodeCalls.export_remove, name)
        except errors.GanetiError as err:
            if not only_warn:
                raise
            self.ctx.warn(f"{name} stays on node {target.name}: {errors.text(err)}")

    def _stop(self, stack: ExitStack, failed: list[str]) -> None:
        """Stop a guest that runs; it is started again when the stack is closed."""
        ctx, op = self.ctx, self.op
        if not (op.shutdown and self.plan.running):
            return
        ctx.log(f"* shutting down instance {self.instance.name}")
        if not op.remove_instance:
            stack.callback(self._start_again, failed)
        power.stop(ctx, self.instance, op, op.shutdown_timeout)

    def _start_again(self, failed: list[str]) -> None:
        ctx = self.ctx
        ctx.log(f"* starting instance {self.instance.name}")
        try:
            power.start(ctx, self.now, self.op)
        except errors.GanetiError as err:
            failed.append(errors.text(err))
            ctx.warn(f"{self.instance.name} was not started again: {errors.text(err)}")

    @contextmanager
    def _activate(self) -> Iterator[None]:
        """The disks can be read; those that were not active before are deactivated afterwards."""
        ctx, disks = self.ctx, self.plan.disks
        try:
            instance_disks.assemble(ctx, self.instance, disks)
            yield
        finally:
            if not self.instance.disks_active:
                instance_disks.shutdown(ctx, self.instance, disks)

    @contextmanager
    def _zero_and_freeze(self) -> Iterator[list[NodeDisk | None]]:
        if self.plan.zeroing is not None:
            time = export_request.choose_zeroing_time(self.op, self.plan.disks)
            installing.zero_free_space(self.ctx, self.now, self.plan.zeroing, self.op, time)
        with self._freeze() as copies:
            yield copies

    @contextmanager
    def _freeze(self) -> Iterator[list[NodeDisk | None]]:
        """A copy of each disk as it is now, None where the disk itself is read."""
        plan, op = self.plan, self.op
        copies: list[NodeDisk | None] = []
        writes = plan.running and not op.shutdown
        try:
            for disk in plan.disks:
                frozen = None
                if export_request.has_snapshots(disk) and not op.long_sleep:
                    frozen = self._freeze_one(disk, must=writes)
                copies.append(frozen)
            yield copies
        finally:
            for disk, copy in zip(plan.disks, copies):
                if copy is not None:
                    self._drop(disk, copy)

    def _freeze_one(self, disk: Disk, *, must: bool) -> NodeDisk | None:
        """A snapshot; None when the guest does not run and there is no room for one."""
        ctx, source = self.ctx, self.plan.source
        wire = annotate.disk(ctx.config, disk, source.group)
        bottom = wire.children[0] if wire.children else wire
        ctx.log(f"* creating a snapshot of {disk.iv_name} on node {source.name}")
        try:
            found = ctx.rpc.call_one(source, NodeCalls.blockdev_snapshot, wire, None, None)
        except errors.GanetiError as err:
            if must:
                raise
            ctx.warn(
                f"{disk.iv_name} could not be frozen, so the instance stays down until its disks"
                f" were read: {errors.text(err)}"
            )
            return None
        # the logical id alone says where it is; what is recorded of the disk holds for the copy
        return msgspec.structs.replace(
            bottom, logical_id=tuple(found), children=(), uuid=disk.uuid, iv_name=disk.iv_name
        )

    def _drop(self, disk: Disk, copy: NodeDisk) -> None:
        try:
            self.ctx.rpc.call_one(self.plan.source, NodeCalls.blockdev_remove, copy)
        except errors.GanetiError as err:
            self.ctx.warn(f"the snapshot of {disk.iv_name} stays: {errors.text(err)}")

    def _transfer(self, copies: Sequence[NodeDisk | None]) -> None:
        """Send all disks; raises what :func:`dumps.copy` does."""
        ctx, plan = self.ctx, self.plan
        instance = annotate.instance(ctx.config, self.now, disks=list(plan.disks))
        sources = [
            dumps.Side(plan.source, instance, ("script", [instance.disks_info[index], index, copy]))
            for index, copy in enumerate(copies)
        ]
        if plan.remote is not None:
            self._send(sources, plan.remote)
        if plan.target is None:
            return
        for disk, source in zip(plan.disks, sources):
            ctx.log(f"* exporting {disk.iv_name} ({disk.size} MiB)")
            path = f"{self.instance.name}{_UNFINISHED}/{disk.uuid}"
            target = dumps.Side(plan.target, instance, ("file", [path]))
            dumps.copy(ctx, source, target, compress=self.op.compress, what=disk.iv_name)

    def _send(self, sources: Sequence[dumps.Side], remote: _Remote) -> None:
        """Send all disks at once: the other cluster waits for all of them."""
        ctx = self.ctx
        with ExitStack() as stack:
            ends = []
            for disk, source, place in zip(self.plan.disks, sources, remote.places):
                ctx.log(f"* sending {disk.iv_name} ({disk.size} MiB) to {place.host}")
                options = ImportExportOptions(
                    key_name=remote.key_name,
                    ca_pem=remote.ca_pem,
                    compress=self.op.compress,
                    magic=place.magic,
                )
                sending = dumps.send(ctx, source, options, place, disk.iv_name)
                ends.append(stack.enter_context(sending))
            dumps.follow(ctx, ends)

    def _forget_key(self) -> None:
        if self.plan.remote is None:
            return
        try:
            self.ctx.rpc.call_one(
                self.plan.source, NodeCalls.x509_cert_remove, self.plan.remote.key_name
            )
        except errors.GanetiError as err:
            self.ctx.warn(f"the key of the export stays: {errors.text(err)}")

    def _finish(self, target: Node) -> None:
        ctx, now = self.ctx, self.now
        ctx.log(f"* finishing the export on node {target.name}")
        wire = exports.describe(ctx.config, now, list(self.plan.disks))
        private: JsonObject = dict(now.osparams_private)
        ctx.rpc.call_one(target, NodeCalls.finalize_export, wire, list(wire.disks_info), private)

    def _remove(self) -> None:
        self.ctx.log(f"* removing instance {self.instance.name}")
        removal.remove(
            self.ctx,
            self.op,
            self.instance,
            self.plan.disks,
            timeout=self.op.shutdown_timeout,
            ignore_failures=self.op.ignore_remove_failures,
        )
