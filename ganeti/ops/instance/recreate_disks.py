"""Make lost disks of a stopped instance again, empty."""

from __future__ import annotations

from collections.abc import Iterator

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.jobs.execution import Need
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.names import DiskMode, LockLevel, NodeUuid
from ganeti.model.node import Node
from ganeti.opcodes.devices import DiskParams
from ganeti.opcodes.instance_disks import OpInstanceRecreateDisks
from ganeti.ops import annotate, locks
from ganeti.ops import hooks as hook_env
from ganeti.ops.operation import Hooks, Needs, Operation
from ganeti.ops.planning import checks, disk_layout
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import disks, space, sync
from ganeti.rpc.calls import NodeCalls

_KEYS = ("size", "mode", "spindles")


class InstanceRecreateDisks(Operation[OpInstanceRecreateDisks, None]):
    """Refuses to touch data that is still there; remains without data are cleared away."""

    def locks(self) -> Needs:
        ctx, op = self.ctx, self.op
        found = yield from locks.real_instance(ctx, op.instance_name, op.instance_uuid)
        self.uuid = found.uuid
        nodes = {*locks.storage_nodes(ctx.config, found), *(n.uuid for n in self._given())}
        yield Need(LockLevel.NODE, sorted(nodes), shared=True)
        yield Need(LockLevel.NODE_RES, sorted(nodes))

    def _given(self) -> list[Node]:
        names = self.op.node_uuids or self.op.nodes
        return [self.ctx.config.node(name) for name in names]

    # check -------------------------------------------------------------------------------

    def check(self) -> None:
        ctx, op = self.ctx, self.op
        self.instance = ctx.config.instances[self.uuid]
        current = ctx.config.disks_of(self.instance)
        if not current:
            raise errors.invalid(f"instance {self.instance.name} has no disks to make again")
        if op.iallocator is not None:
            raise errors.invalid("name the nodes with --node: allocators do not choose them here")
        wanted = {item.index: item.params for item in op.disks}
        for index in wanted:
            disks.by_index(ctx.config, self.instance, index)
        self.nodes = self._target_nodes(current, wanted)
        self._check_stopped()
        chosen = wanted or {index: DiskParams() for index in range(len(current))}
        self.old = [current[index] for index in sorted(chosen)]
        self.new = [self._planned(current[n], n, chosen[n]) for n in sorted(chosen)]
        self.leftovers = list(self._leftovers())
        space.check(ctx, self.new, self.nodes[0].uuid, f"instance {self.instance.name}")

    def _target_nodes(self, current: list[Disk], wanted: dict[int, DiskParams]) -> list[Node]:
        """Where the disks are made, the primary node first."""
        config = self.ctx.config
        given = self._given()
        old = [config.nodes[uuid] for uuid in config.instance_nodes(self.instance)]
        if given and wanted and len(wanted) < len(current):
            raise errors.invalid("disks can go to other nodes only all together; leave --disk away")
        if given and len({node.uuid for node in given}) != len(old):
            raise errors.invalid(
                f"instance {self.instance.name} needs {len(old)} different nodes, not {len(given)}"
            )
        nodes = given or old
        for node in nodes:
            checks.usable_node(node, f"for the disks of {self.instance.name}")
        return nodes

    def _check_stopped(self) -> None:
        """The instance must not run on its old primary node, unless that is gone."""
        primary = self.ctx.config.nodes[self.instance.primary_node]
        if primary.offline:
            return
        if power.running(self.ctx, self.instance) is not None:
            raise errors.wrong_state(
                f"instance {self.instance.name} is running; stop it before its disks are made again"
            )

    def _planned(self, disk: Disk, index: int, params: DiskParams) -> Disk:
        given = params.to_wire()
        wrong = sorted(set(given) - set(_KEYS))
        if wrong:
            raise errors.invalid(
                f"disk {index}: {', '.join(wrong)} cannot be changed here, only {', '.join(_KEYS)}"
            )
        if params.spindles is not None:
            nodes = [node.uuid for node in self.nodes]
            checks.spindles_count(self.ctx.config, f"disk {index}", nodes)
        if params.size:
            disk = disks.grown(disk, params.size - disk.size)
        return disk_layout.on_nodes(
            self.ctx,
            base.replace(
                disk,
                mode=disk.mode if params.mode is None else DiskMode(params.mode),
                spindles=disk.spindles if params.spindles is None else params.spindles,
            ),
            [node.uuid for node in self.nodes],
        )

    def _leftovers(self) -> Iterator[tuple[Node, Disk]]:
        """Parts without data that are in the way; refuses when data is there.

        Raises:
            OpPrereqError: the data of a disk is still on a node.
        """
        ctx = self.ctx
        for disk in self.new:
            for node in disks.nodes_of(ctx.config, disk, self.nodes[0].uuid):
                for part in (*disk.children, *([] if disk.children else [disk])):
                    wire = annotate.disk(ctx.config, part, node.group)
                    if ctx.rpc.one(node, NodeCalls.blockdev_find, wire) is None:
                        continue
                    if part in disk.children[1:]:
                        yield node, part
                        continue
                    hint = (
                        "; gnt-instance replace-disks makes the lost side of a mirror again"
                        if disks.traits(disk).mirrored
                        else ""
                    )
                    raise errors.wrong_state(
                        f"{disk.iv_name} of {self.instance.name} still has data on node"
                        f" {node.name} ({'/'.join(map(str, part.logical_id))}), which would be"
                        f" lost{hint}"
                    )

    def hooks(self) -> Hooks:
        config = self.ctx.config
        instance = config.instances[self.uuid]
        env = hook_env.instance_env(config, instance)
        nodes = [config.cluster.master_node, *config.instance_nodes(instance)]
        return Hooks("instance-recreate-disks", "INSTANCE", env, nodes, nodes)

    # run ---------------------------------------------------------------------------------

    def run(self) -> None:
        ctx = self.ctx
        moved = base.replace(self.instance, primary_node=NodeUuid(self.nodes[0].uuid))
        for node, part in self.leftovers:
            ctx.log(f"Clearing away {'/'.join(map(str, part.logical_id))} on {node.name}")
            for failure in disks.remove_from(ctx, part, [node]):
                raise errors.OpExecError(failure)
        ctx.log(f"Creating disks of instance {self.instance.name}...")
        disks.create(ctx, moved, self.new)
        self._synchronise(moved)

        def edit(draft: Draft) -> None:
            for disk in self.new:
                draft.put(disk)
            draft.update(self.instance, primary_node=moved.primary_node, disks_active=False)

        ctx.store.change("instance-recreate-disks", ctx.author, edit)

    def _synchronise(self, instance: Instance) -> None:
        """Mirrors get their copies; all is deactivated again."""
        ctx = self.ctx
        mirrored = [disk for disk in self.new if disks.traits(disk).mirrored]
        if not mirrored:
            return
        ctx.release(LockLevel.NODE_RES)
        outcome = sync.wait(ctx, instance, mirrored)
        if outcome is sync.Outcome.DEGRADED:
            raise errors.OpExecError(
                f"the new disks of instance {instance.name} are degraded and are removed again"
            )
        disks.shutdown(ctx, instance, mirrored)
