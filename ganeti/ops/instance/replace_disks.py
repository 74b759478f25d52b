"""Replace one side of the mirrored disks of an instance."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.enums import ReplaceDisksMode
from ganeti.opcodes.instance_disks import OpInstanceReplaceDisks
from ganeti.ops import hooks as hook_env
from ganeti.ops import locks
from ganeti.ops.allocator import ask
from ganeti.ops.on_reservations.move import ReservationReplaceDisks
from ganeti.ops.operation import Finding, FindingOperation, Hooks
from ganeti.ops.planning import checks, disk_layout, policy, snapshots
from ganeti.ops.steps import node_checks
from ganeti.ops.steps.relocation import secondary_change
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import disks, space, sync, volume_exchange
from ganeti.ops.targets.instance import PlannedInstanceOperation


@dataclass(frozen=True)
class _Plan:
    """Which disks are replaced, and from which side their data comes."""

    primary: Node
    secondary: Node
    disks: list[Disk]
    #: the node with the good copies
    source: Node
    #: the node that gets new volumes
    target: Node
    #: the same disks on their new nodes, when the secondary node changes
    moved: list[Disk]


class InstanceReplaceDisks(
    FindingOperation[OpInstanceReplaceDisks, Node | None, None],
    PlannedInstanceOperation[OpInstanceReplaceDisks, _Plan, None],
):
    """The old copy is destroyed only when the new one is in sync, unless released early."""

    for_reservation = ReservationReplaceDisks

    def find(self) -> Finding[Node | None]:
        """The new secondary node, None when new volumes are made on the same nodes."""
        ctx, op = self.ctx, self.op
        yield from self.lock_instance()
        nodes = set(locks.storage_nodes(ctx.config, self.instance))
        remote = self._find_named_node()
        if op.mode is ReplaceDisksMode.NEW_SECONDARY and remote is None:
            # an allocator may choose any of them
            yield Need(LockLevel.NODE, sorted(ctx.config.nodes), shared=True)
            remote = self._ask_allocator(self.instance)
            nodes.add(remote.uuid)
            ctx.release(LockLevel.NODE, keep=nodes)
            yield Need(LockLevel.NODE_RES, sorted(nodes))
            return remote
        if remote is not None:
            nodes.add(remote.uuid)
        yield from self.lock_nodes(nodes, storage=True)
        return remote

    def _find_named_node(self) -> Node | None:
        """The node that is named as the new secondary one; OpPrereqError in other modes."""
        op = self.op
        name = op.remote_node_uuid or op.remote_node
        if op.mode is not ReplaceDisksMode.NEW_SECONDARY and (name or op.iallocator):
            raise errors.make_invalid_error(
                "a new node can only be given when the secondary node is changed"
            )
        if name and op.iallocator:
            raise errors.make_invalid_error(
                "name either the new secondary node or an allocator that chooses it"
            )
        return self.ctx.config.node(name) if name else None

    def _ask_allocator(self, instance: Instance) -> Node:
        """The secondary node that an allocator chooses; OpPrereqError, OpExecError."""
        config = self.ctx.config
        name = ask.choose_allocator(
            self.ctx, self.op.iallocator, "name the new secondary node with --new-secondary"
        )
        kinds = {str(disk.dev_type) for disk in _mirrored(config, instance)}
        node = ask.replace_secondary(self.ctx, name, instance, min(kinds, default=""))
        self.ctx.log(f"Selected new secondary node via iallocator {name}: {node.name}")
        return node

    # check -------------------------------------------------------------------------------

    def decide(self) -> _Plan:
        ctx, config = self.ctx, self.ctx.config
        all_disks = _mirrored(config, self.instance)
        if not all_disks:
            raise errors.make_invalid_error(
                f"only mirrored disks can be replaced, but those of {self.instance.name} have"
                f" template {config.disk_template(self.instance)}"
            )
        snapshots.check_none(self.instance, "before disks are replaced")
        primary = power.primary(ctx, self.instance)
        [uuid] = config.secondary_nodes(self.instance)
        secondary = config.nodes[uuid]
        chosen = self._choose_disks(all_disks)
        if self.found is not None:
            return self._plan_new_secondary(self.found, primary, secondary, chosen)
        return self._plan_same_nodes(primary, secondary, chosen)

    def _choose_disks(self, all_disks: list[Disk]) -> list[Disk]:
        if not self.op.disks:
            return all_disks
        config = self.ctx.config
        chosen = [
            disks.find_by_index(config, self.instance, index)
            for index in sorted(set(self.op.disks))
        ]
        for disk in chosen:
            if not disks.traits(disk).mirrored:
                raise errors.make_invalid_error(
                    f"{disk.iv_name} of {self.instance.name} has template {disk.dev_type}; only"
                    " mirrored disks can be replaced"
                )
        if self.found is not None and len(chosen) < len(all_disks):
            raise errors.make_invalid_error(
                "a new secondary node gets all mirrored disks; omit --disks"
            )
        return chosen

    def _plan_new_secondary(
        self, node: Node, primary: Node, secondary: Node, chosen: list[Disk]
    ) -> _Plan:
        """Refuse a node that cannot be the secondary one; OpPrereqError."""
        ctx, instance = self.ctx, self.instance
        if node.uuid in (primary.uuid, secondary.uuid):
            role = "primary" if node.uuid == primary.uuid else "secondary"
            raise errors.make_invalid_error(
                f"node {node.name} is the {role} node of {instance.name} already"
            )
        checks.check_usable(node, f"as the secondary node of {instance.name}")
        if node.group != primary.group:
            checks.shape_allowed(
                ctx,
                node.group,
                policy.shape(ctx.config, instance),
                ignore=self.op.ignore_ipolicy,
            )
        node_checks.can_reach(ctx, node, primary)
        nodes = (primary.uuid, node.uuid)
        moved = [disk_layout.put_on_nodes(ctx, disk, nodes) for disk in chosen]
        space.check(ctx, moved, primary.uuid, f"instance {instance.name}", nodes=[node.uuid])
        return _Plan(primary, secondary, chosen, source=primary, target=node, moved=moved)

    def _plan_same_nodes(self, primary: Node, secondary: Node, chosen: list[Disk]) -> _Plan:
        """Decide which side gets new volumes; refuse it when the other side is not good."""
        ctx, name = self.ctx, self.instance.name
        checks.all_online([primary, secondary], f"to replace disks of {name}")
        target, source = secondary, primary
        if self.op.mode is ReplaceDisksMode.ON_PRIMARY:
            target, source = primary, secondary
        if self.op.mode is ReplaceDisksMode.AUTO:
            here, there = (sync.faulty(ctx, node, chosen) for node in (primary, secondary))
            if here and there:
                raise errors.make_state_error(
                    f"instance {name} has broken disks on both nodes ({join_names(here)} on"
                    f" {primary.name}, {join_names(there)} on {secondary.name}); they cannot be"
                    " replaced automatically"
                )
            if here:
                target, source = primary, secondary
            chosen = [disk for disk in chosen if disk.iv_name in (here or there)]
        if chosen:
            what = f"new volumes of {name}"
            space.check(ctx, chosen, primary.uuid, what, nodes=[target.uuid])
        return _Plan(primary, secondary, chosen, source, target, moved=[])

    def hooks(self) -> Hooks:
        config, instance = self.ctx.config, self.now
        env = {
            **hook_env.instance_env(config, instance),
            "MODE": self.op.mode,
            "NEW_SECONDARY": None if self.found is None else self.found.name,
            "OLD_SECONDARY": self.plan.secondary.name,
        }
        nodes = [config.cluster.master_node, instance.primary_node]
        if self.found is not None:
            nodes.append(self.found.uuid)
        return Hooks("mirrors-replace", "INSTANCE", env, nodes, nodes)

    # run ---------------------------------------------------------------------------------

    def run(self) -> None:
        ctx, instance, plan = self.ctx, self.instance, self.plan
        if not plan.disks:
            ctx.log(f"No disk of instance {instance.name} needs replacement")
            return
        names = ", ".join(disk.iv_name for disk in plan.disks)
        ctx.log(f"Replacing {names} of instance '{instance.name}'")
        was_active = instance.disks_active
        if not was_active:
            disks.assemble(ctx, instance, ignore_secondaries=True)
        try:
            self._refuse_bad_source()
            if self.found is not None:
                secondary_change.run(
                    ctx, instance, plan.disks, plan.moved, early_release=self.op.early_release
                )
            else:
                volume_exchange.run(
                    ctx,
                    instance,
                    plan.disks,
                    plan.target,
                    early_release=self.op.early_release,
                )
        finally:
            if not was_active:
                disks.shutdown(ctx, self.now)

    def _refuse_bad_source(self) -> None:
        """Copies are made of good data only."""
        bad = sync.faulty(self.ctx, self.plan.source, self.plan.disks)
        if bad:
            raise errors.OpExecError(
                f"{join_names(bad)} of {self.instance.name} has no good data on node"
                f" {self.plan.source.name}, from which it would be copied; nothing was changed"
            )


def _mirrored(config: Config, instance: Instance) -> list[Disk]:
    """The disks that can be replaced; others of the instance have no second copy."""
    return [disk for disk in config.disks_of(instance) if disks.traits(disk).mirrored]
