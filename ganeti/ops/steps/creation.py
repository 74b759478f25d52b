"""Make an instance: record it, make its disks, install its guest OS, start it.

Until everything is in place the instance is in the configuration as *forthcoming*: its name,
addresses and places of disks are taken, and whatever a crash leaves behind is on record. Its
field ``creating`` holds the id of the job, which a reservation does not have.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config.changes import Draft
from ganeti.locking.levels import LockLevel
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.enums import AdminState, DiskTemplate
from ganeti.model.image import Image
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.model.params import fill
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.hidden import reveal_all
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops import annotate
from ganeti.ops import hooks as hook_env
from ganeti.ops.operation import Hooks, PlannedOperation
from ganeti.ops.steps import images, installing, node_checks
from ganeti.ops.steps.running import bridges, power
from ganeti.ops.steps.storage import adoption, attachment, space, sync
from ganeti.ops.steps.storage import disks as instance_disks
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import NodeInstance


@dataclass(frozen=True)
class CreationPlan:
    """The plan of a creation; ports and minors are allocated when it is recorded."""

    instance: Instance
    disks: list[Disk]
    #: nodes of the instance, the primary first
    nodes: list[Node]
    template: DiskTemplate
    #: whether the disks exist already
    adopts: bool
    #: what is written to the first disk, in place of an OS
    image: Image | None = None


class Creation(PlannedOperation[OpInstanceCreate, CreationPlan, list[str]]):
    """Returns the names of the instance's nodes, the primary first.

    A subclass finds the nodes, decides what is made, and records it.
    """

    #: whether memory and space are reserved for this instance
    is_reserved: ClassVar[bool]

    @abstractmethod
    def record(self) -> tuple[Instance, list[Disk]]:
        """Record the instance as forthcoming, with ports and minors; undone on failure."""

    @property
    def request(self) -> OpInstanceCreate:
        """The request, with the values that follow from it."""
        return self.op

    # check -------------------------------------------------------------------------------

    def check_node(self, plan: CreationPlan) -> None:
        """Ask the primary node about parameters, OS, space and memory; OpPrereqError."""
        ctx, instance, node = self.ctx, plan.instance, plan.nodes[0]
        hypervisor = instance.real_hypervisor
        full = ctx.config.hvparams(instance)
        ctx.rpc.call_one(node, NodeCalls.hypervisor_validate_params, str(hypervisor), full)
        hidden = ctx.config.private_osparams_for(instance.os, {})
        values = ctx.config.osparams_for(instance.os, fill(hidden, self.osparams(instance)))
        if instance.os:
            force = self.request.force_variant
            node_checks.os_on_node(ctx, node, instance.os, values, hypervisor, force_variant=force)
        for disk in plan.disks:
            attachment.check_openable(ctx.config, instance, disk)
        if self.installs(plan):
            installing.check(ctx, instance, plan.disks, values)
        for each in plan.nodes:
            bridges.check(ctx, instance, each)
        what = f"instance {instance.name}"
        without = None if self.is_reserved else ()
        if not plan.adopts:
            space.check(ctx, plan.disks, node.uuid, what, without=without)
        if self.starts:
            amount = ctx.config.beparams(instance)["maxmem"]
            node_checks.resources(
                ctx,
                node,
                what,
                memory=(str(hypervisor), amount),
                without=without,
                claims={instance.uuid: amount},
            )

    def installs(self, plan: CreationPlan) -> bool:
        """Whether an OS, or the image of one, is put on new disks."""
        op = self.request
        new = op.mode is InstCreateMode.CREATE and not plan.adopts
        return new and not op.no_install and plan.image is None and not op.disk_sources

    @property
    def starts(self) -> bool:
        return self.request.start and not self.request.no_install

    def osparams(self, instance: Instance) -> JsonObject:
        """All OS parameters of this creation, secret ones too (these are never stored).

        Raises:
            OpPrereqError: a secret parameter is also stored.
        """
        result: JsonObject = {**instance.osparams, **instance.osparams_private}
        for key, value in reveal_all(self.request.osparams_secret).items():
            if key in result:
                raise errors.make_invalid_error(f"OS parameter '{key}' is given more than once")
            result[key] = value
        return result

    def hooks(self) -> Hooks:
        config, plan = self.ctx.config, self.plan
        env = hook_env.instance_env(config, base.replace(plan.instance, disks=()))
        env.update(INSTANCE_DISK_COUNT=len(plan.disks), INSTANCE_DISK_TEMPLATE=plan.template)
        env.update(INSTANCE_STATUS=str(self.request.start), ADD_MODE=str(self.request.mode))
        for index, disk in enumerate(plan.disks):
            env.update(hook_env.disk_env(index, base.replace(disk, uuid="")))
        env["INSTANCE_SECONDARIES"] = [node.name for node in plan.nodes[1:]]
        nodes = [config.cluster.master_node, *(node.uuid for node in plan.nodes)]
        return Hooks("instance-add", "INSTANCE", env, nodes, nodes)

    # run ---------------------------------------------------------------------------------

    def run(self) -> list[str]:
        ctx, plan = self.ctx, self.plan
        instance, disks = self.record()
        self._create_disks(instance, disks)
        complete = self._wait_for_sync(instance, disks)
        if not plan.adopts:
            self.fill(instance, disks)
        self._make_real(instance, syncing=not complete)
        if self.starts:
            ctx.log("* starting instance...")
            down = AdminState.DOWN
            ctx.undo.callback(power.set_state, ctx, instance, down, disks_active=False)
            power.set_state(ctx, instance, AdminState.UP, disks_active=True)
            power.start(ctx, ctx.config.instances[instance.uuid], self.request)
        ctx.locks.keep(ctx.job.job_id, LockLevel.INSTANCE, [instance.name])
        return [node.name for node in plan.nodes]

    def _create_disks(self, instance: Instance, disks: Sequence[Disk]) -> None:
        ctx = self.ctx
        if not disks:
            return
        if self.plan.adopts:
            ctx.log("* adopting instance disks...")
            adoption.run(ctx, instance, disks, self.request.disks)
        else:
            ctx.log("* creating instance disks...")
            instance_disks.create(ctx, instance, disks)

        def edit(draft: Draft) -> None:
            # from here on the nodes tell what the disks take; it is not held back any more
            for disk in disks:
                draft.update(disk, forthcoming=None)

        ctx.store.change("instance-disks-made", ctx.author, edit)
        ctx.release(LockLevel.NODE_RES)

    def _wait_for_sync(self, instance: Instance, disks: Sequence[Disk]) -> bool:
        """See that mirrored disks have both copies, or that these are being made.

        Returns whether all copies are complete.

        Raises:
            OpExecError: a disk is degraded.
        """
        if not any(instance_disks.traits(disk).mirrored for disk in disks):
            return True
        # without a wait too: mirrors that never find each other are not worth an installation
        outcome = sync.wait(self.ctx, instance, disks, only_begin=not self.request.wait_for_sync)
        if outcome is sync.Outcome.DEGRADED:
            raise errors.OpExecError(
                f"some disks of instance {instance.name} are degraded, so it is removed again"
            )
        return outcome is not sync.Outcome.LEFT

    def fill(self, instance: Instance, disks: Sequence[Disk]) -> None:
        """Put the content on new disks: of an image, of files or of an OS definition, if any."""
        if self.plan.image is not None:
            self._write_image(instance, disks, self.plan.image)
            return
        op = self.request
        if op.disk_sources:
            ctx = self.ctx
            ctx.undo.callback(instance_disks.shutdown, ctx, instance, disks)
            instance_disks.assemble(ctx, instance, disks)
            images.fill(ctx, instance, disks, op.disk_sources)
            return
        if not self.installs(self.plan):
            return
        installing.run(
            self.ctx,
            self.ctx.config.instances[instance.uuid],
            disks,
            self.activate(instance, disks),
            op,
            reinstall=False,
            debug=op.debug_level or 0,
            startup_timeout=op.helper_startup_timeout,
            timeout=op.helper_shutdown_timeout,
        )

    def activate(self, instance: Instance, disks: Sequence[Disk]) -> NodeInstance:
        """Activate the disks, and return the instance as the scripts on its node see it."""
        ctx = self.ctx
        ctx.undo.callback(instance_disks.shutdown, ctx, instance, disks)
        instance_disks.assemble(ctx, instance, disks)
        # with the times of its creation, which the configuration sets
        current = ctx.config.instances[instance.uuid]
        return annotate.instance(
            ctx.config, current, osparams=self.osparams(instance), disks=list(disks)
        )

    def _write_image(self, instance: Instance, disks: Sequence[Disk], image: Image) -> None:
        ctx = self.ctx
        ctx.log(f"* writing image {image.name} to disk 0...")
        ctx.undo.callback(instance_disks.shutdown, ctx, instance, disks)
        instance_disks.assemble(ctx, instance, disks)
        images.write(ctx, instance, disks[0], image)

    def _make_real(self, instance: Instance, *, syncing: bool) -> None:
        def edit(draft: Draft) -> None:
            draft.update(instance, forthcoming=None, creating=None, reservation=None)

        ctx = self.ctx
        ctx.store.change("instance-add", ctx.author, edit)
        if self.starts:
            return
        current = ctx.config.instances[instance.uuid]
        if syncing:
            power.set_state(ctx, current, AdminState.DOWN, disks_active=True)
        else:
            instance_disks.shutdown(ctx, current)
