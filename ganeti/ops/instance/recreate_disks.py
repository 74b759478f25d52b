"""Recreate lost disks of a stopped instance, empty."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.devices import DiskParams
from ganeti.opcodes.instance_disks import OpInstanceRecreateDisks
from ganeti.ops import annotate, locks
from ganeti.ops.allocator import ask as allocator
from ganeti.ops.operation import Finding, FindingOperation, Hooks
from ganeti.ops.planning import checks, disk_layout, disk_settings, snapshots
from ganeti.ops.steps.reservations import place
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import disks, space, sync
from ganeti.ops.targets.instance import PlannedInstanceOperation
from ganeti.rpc.calls import NodeCalls

_KEYS = ("size", "mode", "spindles", *disk_settings.LIMITS)


@dataclass(frozen=True)
class _Plan:
    #: where the disks will be, the primary node first
    nodes: list[Node]
    new: list[Disk]
    #: parts without data that are in the way
    leftovers: list[tuple[Node, Disk]]


class InstanceRecreateDisks(
    FindingOperation[OpInstanceRecreateDisks, list[Node], None],
    PlannedInstanceOperation[OpInstanceRecreateDisks, _Plan, None],
):
    """Refuses to touch data that is still there; remains without data are removed."""

    def find(self) -> Finding[list[Node]]:
        """The nodes that are named or that an allocator chooses; empty for those it has."""
        ctx, op = self.ctx, self.op
        yield from self.lock_instance()
        nodes = locks.storage_nodes(ctx.config, self.instance)
        if op.iallocator is None:
            given = self._find_given_nodes()
            yield from self.lock_nodes([*nodes, *(node.uuid for node in given)], storage=True)
            return self._find_given_nodes()
        # an allocator may choose any of them
        yield Need(LockLevel.NODE, sorted(ctx.config.nodes), shared=True)
        found = self._ask_allocator(op.iallocator)
        used = sorted({*nodes, *(node.uuid for node in found)})
        ctx.release(LockLevel.NODE, keep=used)
        yield Need(LockLevel.NODE_RES, used)
        return found

    def _find_given_nodes(self) -> list[Node]:
        names = self.op.node_uuids or self.op.nodes
        return [self.ctx.config.node(name) for name in names]

    def _ask_allocator(self, name: str) -> list[Node]:
        """Nodes of the same group for all disks; OpPrereqError, OpExecError."""
        if self._find_given_nodes():
            raise errors.make_invalid_error("give either nodes or an allocator, not both")
        config = self.ctx.config
        group = config.nodes[self.instance.primary_node].group
        chosen = allocator.choose_allocator(self.ctx, name, "name the nodes with --node")
        item = place.read_recorded(self.ctx, self.instance)
        return place.choose_nodes(self.ctx, chosen, item, [group], ignore_ipolicy=True)

    # check -------------------------------------------------------------------------------

    def decide(self) -> _Plan:
        ctx, op = self.ctx, self.op
        current = ctx.config.disks_of(self.instance)
        if not current:
            raise errors.make_invalid_error(
                f"instance {self.instance.name} has no disks to recreate"
            )
        snapshots.check_none(self.instance, "before disks are made again")
        wanted = {item.index: item.params for item in op.disks}
        for index in wanted:
            disks.find_by_index(ctx.config, self.instance, index)
        nodes = self._target_nodes(current, wanted)
        self._check_stopped()
        chosen = wanted or {index: DiskParams() for index in range(len(current))}
        new = [self._plan_disk(current[n], n, chosen[n], nodes) for n in sorted(chosen)]
        leftovers = list(self._leftovers(new, nodes[0].uuid))
        space.check(ctx, new, nodes[0].uuid, f"instance {self.instance.name}")
        return _Plan(nodes, new, leftovers)

    def _target_nodes(self, current: list[Disk], wanted: dict[int, DiskParams]) -> list[Node]:
        """Nodes on which the disks are made, the primary node first."""
        config = self.ctx.config
        given = self.found
        old = [config.nodes[uuid] for uuid in config.instance_nodes(self.instance)]
        if given and wanted and len(wanted) < len(current):
            raise errors.make_invalid_error(
                "disks can only move to other nodes all together; omit --disk"
            )
        if given and len({node.uuid for node in given}) != len(old):
            raise errors.make_invalid_error(
                f"instance {self.instance.name} needs {len(old)} different nodes, not {len(given)}"
            )
        nodes = given or old
        for node in nodes:
            checks.check_usable(node, f"for the disks of {self.instance.name}")
        return nodes

    def _check_stopped(self) -> None:
        """The instance must not run on its old primary node, unless that is gone."""
        primary = self.ctx.config.nodes[self.instance.primary_node]
        if primary.offline:
            return
        if power.query_running(self.ctx, self.instance) is not None:
            raise errors.make_state_error(
                f"instance {self.instance.name} is running; stop it before its disks are recreated"
            )

    def _plan_disk(self, disk: Disk, index: int, params: DiskParams, nodes: list[Node]) -> Disk:
        """A disk as it is recreated; OpPrereqError for parameters that cannot change."""
        given = params.to_wire()
        wrong = sorted(set(given) - set(_KEYS))
        if wrong:
            raise errors.make_invalid_error(
                f"disk {index}: {', '.join(wrong)} cannot be changed here, only {', '.join(_KEYS)}"
            )
        if params.spindles is not None:
            uuids = [node.uuid for node in nodes]
            checks.spindles_count(self.ctx.config, f"disk {index}", uuids)
        if params.size:
            disk = disks.larger_disk(disk, params.size - disk.size)
        return disk_layout.put_on_nodes(
            self.ctx,
            disk_settings.change(disk, params),
            [node.uuid for node in nodes],
        )

    def _leftovers(self, new: list[Disk], primary: NodeUuid) -> Iterator[tuple[Node, Disk]]:
        """Parts without data that are in the way; refuses when data is there.

        Raises:
            OpPrereqError: the data of a disk is still on a node.
        """
        ctx = self.ctx
        for disk in new:
            for node in disks.nodes_of(ctx.config, disk, primary):
                for part in (*disk.children, *([] if disk.children else [disk])):
                    wire = annotate.disk(ctx.config, part, node.group)
                    if ctx.rpc.call_one(node, NodeCalls.blockdev_find, wire) is None:
                        continue
                    if part in disk.children[1:]:
                        yield node, part
                        continue
                    hint = (
                        "; gnt-instance replace-disks recreates the lost side of a mirror"
                        if disks.traits(disk).mirrored
                        else ""
                    )
                    raise errors.make_state_error(
                        f"{disk.iv_name} of {self.instance.name} still has data on node"
                        f" {node.name} ({'/'.join(map(str, part.logical_id))}), which would be"
                        f" lost{hint}"
                    )

    def hooks(self) -> Hooks:
        return self.instance_hooks("instance-recreate-disks")

    # run ---------------------------------------------------------------------------------

    def run(self) -> None:
        ctx, plan = self.ctx, self.plan
        moved = base.replace(self.instance, primary_node=NodeUuid(plan.nodes[0].uuid))
        for node, part in plan.leftovers:
            ctx.log(f"Removing {'/'.join(map(str, part.logical_id))} on {node.name}")
            for failure in disks.remove_from(ctx, part, [node]):
                raise errors.OpExecError(failure)
        ctx.log(f"Creating disks of instance {self.instance.name}...")
        disks.create(ctx, moved, plan.new)
        self._synchronise(moved)

        def edit(draft: Draft) -> None:
            for disk in plan.new:
                draft.put(disk)
            draft.update(self.instance, primary_node=moved.primary_node, disks_active=False)

        ctx.store.change("instance-recreate-disks", ctx.author, edit)

    def _synchronise(self, instance: Instance) -> None:
        """Mirrors get their copies; all is deactivated again."""
        ctx = self.ctx
        mirrored = [disk for disk in self.plan.new if disks.traits(disk).mirrored]
        if not mirrored:
            return
        ctx.release(LockLevel.NODE_RES)
        outcome = sync.wait(ctx, instance, mirrored)
        if outcome is sync.Outcome.DEGRADED:
            raise errors.OpExecError(
                f"the new disks of instance {instance.name} are degraded and are removed again"
            )
        disks.shutdown(ctx, instance, mirrored)
