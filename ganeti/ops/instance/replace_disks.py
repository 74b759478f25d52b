"""Replace one side of the mirrored disks of an instance."""

from __future__ import annotations

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.jobs.execution import Need
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.names import LockLevel
from ganeti.model.node import Node
from ganeti.opcodes.enums import ReplaceDisksMode
from ganeti.opcodes.instance_disks import OpInstanceReplaceDisks
from ganeti.ops import hooks as hook_env
from ganeti.ops import locks
from ganeti.ops.allocator import answers, ask, request
from ganeti.ops.operation import Hooks, Needs, Operation
from ganeti.ops.planning import checks, disk_layout, policy
from ganeti.ops.steps import node_checks
from ganeti.ops.steps.relocation import secondary_change
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import disks, space, sync, volume_exchange


class InstanceReplaceDisks(Operation[OpInstanceReplaceDisks, None]):
    """The old copy is destroyed only when the new one is in sync, unless released early."""

    def locks(self) -> Needs:
        ctx, op = self.ctx, self.op
        found = yield from locks.real_instance(ctx, op.instance_name, op.instance_uuid)
        self.uuid = found.uuid
        nodes = set(locks.storage_nodes(ctx.config, found))
        self.remote = self._named_node()
        if self.remote is not None:
            nodes.add(self.remote.uuid)
        if op.mode is ReplaceDisksMode.NEW_SECONDARY and self.remote is None:
            # an allocator looks at all of them
            yield Need(LockLevel.NODE, sorted(ctx.config.nodes), shared=True)
            self.remote = self._ask_allocator(found)
            nodes.add(self.remote.uuid)
            ctx.release(LockLevel.NODE, keep=nodes)
        else:
            yield Need(LockLevel.NODE, sorted(nodes), shared=True)
        yield Need(LockLevel.NODE_RES, sorted(nodes))

    def _named_node(self) -> Node | None:
        """The node that is named as the new secondary one; OpPrereqError in other modes."""
        op = self.op
        name = op.remote_node_uuid or op.remote_node
        if op.mode is not ReplaceDisksMode.NEW_SECONDARY and (name or op.iallocator):
            raise errors.invalid("a new node can only be given when the secondary node is changed")
        if name and op.iallocator:
            raise errors.invalid(
                "name either the new secondary node or an allocator that chooses it"
            )
        return self.ctx.config.node(name) if name else None

    def _ask_allocator(self, instance: Instance) -> Node:
        """The secondary node that an allocator chooses; OpPrereqError, OpExecError."""
        config = self.ctx.config
        name = ask.chosen(
            self.ctx, self.op.iallocator, "name the new secondary node with --new-secondary"
        )
        leave = [config.nodes[uuid].name for uuid in config.secondary_nodes(instance)]
        question = request.relocate(config, instance, leave)
        kinds = {str(disk.dev_type) for disk in _mirrored(config, instance)}
        found = ask.ask(self.ctx, name, question, template=min(kinds, default=""))
        [node] = answers.nodes(config, name, found, 1)
        self.ctx.log(f"Selected new secondary node via iallocator {name}: {node.name}")
        return node

    # check -------------------------------------------------------------------------------

    def check(self) -> None:
        ctx = self.ctx
        config = ctx.config
        self.instance = config.instances[self.uuid]
        all_disks = _mirrored(config, self.instance)
        if not all_disks:
            raise errors.invalid(
                f"only mirrored disks can be replaced, but those of {self.instance.name} have"
                f" template {config.disk_template(self.instance)}"
            )
        self.primary = power.primary(ctx, self.instance)
        [secondary] = config.secondary_nodes(self.instance)
        self.secondary = config.nodes[secondary]
        self.chosen = self._chosen(all_disks)
        if self.remote is not None:
            self._check_new_secondary(self.remote)
        else:
            self._check_same_nodes()

    def _chosen(self, all_disks: list[Disk]) -> list[Disk]:
        if not self.op.disks:
            return all_disks
        config = self.ctx.config
        chosen = [
            disks.by_index(config, self.instance, index) for index in sorted(set(self.op.disks))
        ]
        for disk in chosen:
            if not disks.traits(disk).mirrored:
                raise errors.invalid(
                    f"{disk.iv_name} of {self.instance.name} has template {disk.dev_type}; only"
                    " mirrored disks can be replaced"
                )
        if self.remote is not None and len(chosen) < len(all_disks):
            raise errors.invalid("a new secondary node gets all mirrored disks; leave --disks away")
        return chosen

    def _check_new_secondary(self, node: Node) -> None:
        ctx, instance = self.ctx, self.instance
        if node.uuid in (self.primary.uuid, self.secondary.uuid):
            role = "primary" if node.uuid == self.primary.uuid else "secondary"
            raise errors.invalid(f"node {node.name} is the {role} node of {instance.name} already")
        checks.usable_node(node, f"as the secondary node of {instance.name}")
        if node.group != self.primary.group:
            checks.shape_allowed(
                ctx,
                node.group,
                policy.shape(ctx.config, instance),
                ignore=self.op.ignore_ipolicy,
            )
        node_checks.can_reach(ctx, node, self.primary)
        self.source = self.primary
        nodes = (self.primary.uuid, node.uuid)
        self.moved = [disk_layout.on_nodes(ctx, disk, nodes) for disk in self.chosen]
        space.check(
            ctx, self.moved, self.primary.uuid, f"instance {instance.name}", nodes=[node.uuid]
        )

    def _check_same_nodes(self) -> None:
        """Which side gets new volumes, and whether the other one is good."""
        ctx, name = self.ctx, self.instance.name
        checks.all_online([self.primary, self.secondary], f"to replace disks of {name}")
        self.target, self.source = self.secondary, self.primary
        if self.op.mode is ReplaceDisksMode.ON_PRIMARY:
            self.target, self.source = self.primary, self.secondary
        if self.op.mode is ReplaceDisksMode.AUTO:
            self._find_broken()
        if self.chosen:
            space.check(
                ctx,
                self.chosen,
                self.primary.uuid,
                f"new volumes of {name}",
                nodes=[self.target.uuid],
            )

    def _find_broken(self) -> None:
        """Replace what is broken; both sides at once cannot be."""
        broken = {
            node.uuid: sync.faulty(self.ctx, node, self.chosen)
            for node in (self.primary, self.secondary)
        }
        here, there = broken[self.primary.uuid], broken[self.secondary.uuid]
        if here and there:
            raise errors.wrong_state(
                f"instance {self.instance.name} has broken disks on both nodes"
                f" ({join_names(here)} on {self.primary.name}, {join_names(there)} on"
                f" {self.secondary.name}); they cannot be replaced automatically"
            )
        if here:
            self.target, self.source = self.primary, self.secondary
        names = here or there
        self.chosen = [disk for disk in self.chosen if disk.iv_name in names]

    def hooks(self) -> Hooks:
        config = self.ctx.config
        instance = config.instances[self.uuid]
        env = {
            **hook_env.instance_env(config, instance),
            "MODE": self.op.mode,
            "NEW_SECONDARY": None if self.remote is None else self.remote.name,
            "OLD_SECONDARY": self.secondary.name,
        }
        nodes = [config.cluster.master_node, instance.primary_node]
        if self.remote is not None:
            nodes.append(self.remote.uuid)
        return Hooks("mirrors-replace", "INSTANCE", env, nodes, nodes)

    # run ---------------------------------------------------------------------------------

    def run(self) -> None:
        ctx, instance = self.ctx, self.instance
        if not self.chosen:
            ctx.log(f"No disk of instance {instance.name} needs replacement")
            return
        names = ", ".join(disk.iv_name for disk in self.chosen)
        ctx.log(f"Replacing {names} of instance '{instance.name}'")
        was_active = instance.disks_active
        if not was_active:
            disks.assemble(ctx, instance, ignore_secondaries=True)
        try:
            self._refuse_bad_source()
            if self.remote is not None:
                secondary_change.run(
                    ctx, instance, self.chosen, self.moved, early_release=self.op.early_release
                )
            else:
                volume_exchange.run(
                    ctx,
                    instance,
                    self.chosen,
                    self.target,
                    early_release=self.op.early_release,
                )
        finally:
            if not was_active:
                disks.shutdown(ctx, ctx.config.instances[self.uuid])

    def _refuse_bad_source(self) -> None:
        """Copies are made of good data only."""
        bad = sync.faulty(self.ctx, self.source, self.chosen)
        if bad:
            raise errors.OpExecError(
                f"{join_names(bad)} of {self.instance.name} has no good data on node"
                f" {self.source.name}, from which it would be copied; nothing was changed"
            )


def _mirrored(config: Config, instance: Instance) -> list[Disk]:
    """The disks that can be replaced; others of the instance have no second copy."""
    return [disk for disk in config.disks_of(instance) if disks.traits(disk).mirrored]
