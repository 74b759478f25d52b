"""Create an instance: place, disks, guest OS, first start.

Until everything is in place the instance is in the configuration as *forthcoming*: its name,
addresses and places of disks are taken, and whatever a crash leaves behind is on record. The
number of the job tells it from a reservation (``ops/reservation``).
"""

from __future__ import annotations

import uuid
from collections.abc import Collection

from ganeti import errors
from ganeti.config import parameters
from ganeti.config.changes import Draft
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.jobs.execution import Need
from ganeti.model import base
from ganeti.model.instance import Instance
from ganeti.model.names import AdminState, HypervisorName, InstanceUuid, LockLevel
from ganeti.model.params import Params
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.hidden import reveal_all
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops import annotate
from ganeti.ops import hooks as hook_env
from ganeti.ops.allocator.new_place import NewPlace
from ganeti.ops.operation import Hooks, Needs, Operation
from ganeti.ops.planning import checks, communication_nic, disk_layout, nics, policy
from ganeti.ops.planning import tags as tag_rules
from ganeti.ops.steps import host_names, node_checks
from ganeti.ops.steps.running import bridges, power
from ganeti.ops.steps.storage import adoption, space, sync
from ganeti.ops.steps.storage import disks as instance_disks
from ganeti.ops.targets import network as networks
from ganeti.rpc.calls import NodeCalls


class InstanceCreate(Operation[OpInstanceCreate, list[str]]):
    """Gives the names of the instance's nodes, the primary first."""

    #: whether mirrored disks are still being copied when the instance is ready
    syncing = False
    #: reservations that do not count against it (uuids); None: it is reserved itself, none does
    without: Collection[str] | None = ()

    @classmethod
    def check_submission(cls, op: OpInstanceCreate) -> None:
        if op.forthcoming and op.commit:
            raise errors.invalid(
                "give either --forthcoming, which reserves, or --commit, which creates what was"
                " reserved"
            )

    def locks(self) -> Needs:
        given = checks.host_name(self.op.instance_name, "an instance")
        self.name = host_names.new_name(
            given, name_check=self.op.name_check, ip_check=self.op.ip_check
        )
        config = self.ctx.config
        if config.has_instance_name(self.name):
            raise errors.already_exists(f"instance '{self.name}' exists already")
        place = NewPlace(self.ctx, self.op, self.name)
        yield Need(LockLevel.INSTANCE, (), new=[self.name])
        yield from place.locks()
        self.nodes = place.nodes
        self.node = self.nodes[0]
        # the space that is looked for is still there when the disks are made
        yield Need(LockLevel.NODE_RES, sorted({node.uuid for node in self.nodes}))
        self.cards = communication_nic.cards(self.ctx.config, self.op)
        yield from networks.lock_used(self.ctx, (card.network for card in self.cards))

    # check -------------------------------------------------------------------------------

    def check(self) -> None:
        op, ctx = self.op, self.ctx
        self._check_mode()
        tag_rules.check(op.tags)
        for node in self.nodes:
            checks.usable_node(node, "for a new instance")
        config = ctx.config
        default = config.cluster.enabled_hypervisors[0]
        self.hypervisor = HypervisorName(
            checks.hypervisor_enabled(ctx, str(op.hypervisor or default))
        )
        self.template = disk_layout.template(ctx, op)
        self.os = op.os_type or ""
        self.beparams = parameters.own_backend(config, {}, op.beparams)
        self.full_be = config.beparams_for(self.beparams)
        self.hvparams = checks.check_hvparams(ctx, self.hypervisor, self.os, {}, op.hvparams)
        layout = disk_layout.layout(
            ctx,
            self.name,
            self.template,
            [node.uuid for node in self.nodes],
            file_driver=op.file_driver,
            file_storage_dir=op.file_storage_dir,
        )
        self.adopts = adoption.is_asked_for(op.disks)
        wanted = op.disks
        if self.adopts:
            wanted = adoption.sized(ctx, self.node, self.template, op.disks)
        self.disks = disk_layout.disks(ctx, layout, wanted)
        self.nics = nics.all_new(
            ctx, self.cards, self.node.group, check_conflicts=op.conflicts_check
        )
        self.instance = self._make_instance()
        self._check_policy()
        self._check_node()

    def _check_mode(self) -> None:
        op = self.op
        if op.mode is not InstCreateMode.CREATE:
            raise errors.invalid(f"creation mode {op.mode} is not built yet; only create is")
        if not op.os_type and not op.no_install:
            raise errors.invalid(
                "no guest OS was given; name one with --os-type, or use --no-install"
            )
        if op.no_install and op.start:
            self.ctx.log("Without an OS the instance is not started")

    def _check_policy(self) -> None:
        shape = policy.shape(self.ctx.config, self.instance, self.disks, self.template)
        checks.shape_allowed(self.ctx, self.node.group, shape, ignore=self.op.ignore_ipolicy)

    def _check_node(self) -> None:
        """Ask the node: parameters, OS, space, memory."""
        ctx, node = self.ctx, self.node
        full = ctx.config.hvparams(self.instance)
        ctx.rpc.one(node, NodeCalls.hypervisor_validate_params, str(self.hypervisor), full)
        if self.os:
            values = ctx.config.osparams_for(self.os, self._osparams())
            node_checks.os_on_node(
                ctx, node, self.os, values, self.hypervisor, force_variant=self.op.force_variant
            )
        for each in self.nodes:
            bridges.check(ctx, self.instance, each)
        what = f"instance {self.name}"
        if not self.adopts:
            space.check(ctx, self.disks, node.uuid, what, without=self.without)
        if self.starts:
            memory = (str(self.hypervisor), self.full_be["maxmem"])
            claims: dict[str, int] = {self.instance.uuid: memory[1]}
            node_checks.resources(
                ctx, node, what, memory=memory, without=self.without, claims=claims
            )

    @property
    def starts(self) -> bool:
        return self.op.start and not self.op.no_install

    def _osparams(self) -> Params:
        """All OS parameters of this creation, the hidden ones in clear (never stored as such)."""
        op = self.op
        result: Params = dict(op.osparams)
        for hidden in (op.osparams_private, op.osparams_secret):
            for key, value in reveal_all(hidden).items():
                if key in result:
                    raise errors.invalid(f"OS parameter '{key}' is given more than once")
                result[key] = value
        return result

    def _make_instance(self) -> Instance:
        op = self.op
        return Instance(
            uuid=InstanceUuid(str(uuid.uuid4())),
            name=self.name,
            primary_node=self.node.uuid,
            os=self.os,
            hypervisor=self.hypervisor,
            hvparams=self.hvparams,
            beparams=self.beparams,
            osparams=dict(op.osparams),
            osparams_private=reveal_all(op.osparams_private),
            admin_state=AdminState.DOWN,
            nics=tuple(self.nics),
            disks=tuple(disk.uuid for disk in self.disks),
            tags=tuple(sorted(set(op.tags))),
        )

    def hooks(self) -> Hooks:
        env = hook_env.instance_env(self.ctx.config, base.replace(self.instance, disks=()))
        env.update(INSTANCE_DISK_COUNT=len(self.disks), INSTANCE_DISK_TEMPLATE=self.template)
        env.update(INSTANCE_STATUS=str(self.op.start), ADD_MODE=str(self.op.mode))
        for index, disk in enumerate(self.disks):
            env.update(hook_env.disk_env(index, base.replace(disk, uuid="")))
        env["INSTANCE_SECONDARIES"] = [node.name for node in self.nodes[1:]]
        nodes = [self.ctx.config.cluster.master_node, *(node.uuid for node in self.nodes)]
        return Hooks("instance-add", "INSTANCE", env, nodes, nodes)

    # run ---------------------------------------------------------------------------------

    def run(self) -> list[str]:
        ctx = self.ctx
        self._promise()
        self._create_disks()
        self._wait_for_sync()
        if self.os and not self.op.no_install and not self.adopts:
            self._install()
        self._make_real()
        if self.starts:
            ctx.log("* starting instance...")
            down = AdminState.DOWN
            ctx.undo.callback(power.set_state, ctx, self.instance, down, disks_active=False)
            power.set_state(ctx, self.instance, AdminState.UP, disks_active=True)
            power.start(ctx, ctx.config.instances[self.instance.uuid], self.op)
        ctx.locks.keep(ctx.job.job_id, LockLevel.INSTANCE, [self.name])
        return [node.name for node in self.nodes]

    def _promise(self) -> None:
        """Put the instance into the configuration as forthcoming."""
        needs_port = HYPERVISORS.get(self.hypervisor).traits.needs_port

        def edit(draft: Draft) -> None:
            port = draft.allocate_port() if needs_port else None
            self.instance = base.replace(self.instance, network_port=port)
            promised = base.replace(self.instance, forthcoming=True, creating=self.ctx.job.job_id)
            self.disks = [draft.number_disk(disk) for disk in self.disks]
            draft.add_instance(
                promised, [base.replace(disk, forthcoming=True) for disk in self.disks]
            )

        self.ctx.store.change("instance-promise", self.ctx.author, edit)
        self.ctx.undo.callback(self._forget)

    def _forget(self) -> None:
        """Undo of :meth:`_promise`."""

        def edit(draft: Draft) -> None:
            draft.remove_instance(self.instance)

        self.ctx.store.change("instance-add-undone", self.ctx.author, edit)

    def _create_disks(self) -> None:
        ctx = self.ctx
        if not self.disks:
            return
        if self.adopts:
            ctx.log("* adopting instance disks...")
            adoption.run(ctx, self.instance, self.disks, self.op.disks)
        else:
            ctx.log("* creating instance disks...")
            instance_disks.create(ctx, self.instance, self.disks)
        self._record_disks()
        ctx.release(LockLevel.NODE_RES)

    def _record_disks(self) -> None:
        """From here on the nodes tell what the disks take; it is not held back any more."""

        def edit(draft: Draft) -> None:
            for disk in self.disks:
                draft.update(disk, forthcoming=None)

        self.ctx.store.change("instance-disks-made", self.ctx.author, edit)

    def _wait_for_sync(self) -> None:
        """See that mirrored disks have both copies, or that these are being made.

        Raises:
            OpExecError: a disk is degraded.
        """
        ctx = self.ctx
        mirrored = [disk for disk in self.disks if instance_disks.traits(disk).mirrored]
        if not mirrored:
            return
        # without a wait too: mirrors that never find each other are not worth an installation
        outcome = sync.wait(ctx, self.instance, self.disks, only_begin=not self.op.wait_for_sync)
        self.syncing = outcome is sync.Outcome.LEFT
        if outcome is sync.Outcome.DEGRADED:
            raise errors.OpExecError(
                f"there are some degraded disks for instance {self.name}, so it is removed again"
            )

    def _install(self) -> None:
        ctx = self.ctx
        ctx.log("* running the instance OS create scripts...")
        ctx.undo.callback(instance_disks.shutdown, ctx, self.instance, self.disks)
        instance_disks.assemble(ctx, self.instance, self.disks)
        # with the times of its creation, which the configuration sets
        instance = ctx.config.instances[self.instance.uuid]
        wire = annotate.instance(ctx.config, instance, osparams=self._osparams(), disks=self.disks)
        ctx.rpc.one(self.node, NodeCalls.instance_os_add, wire, False, self.op.debug_level or 0)

    def _make_real(self) -> None:
        def edit(draft: Draft) -> None:
            draft.update(self.instance, forthcoming=None, creating=None, reservation=None)

        ctx = self.ctx
        ctx.store.change("instance-add", ctx.author, edit)
        instance = ctx.config.instances[self.instance.uuid]
        if self.starts:
            return
        if self.syncing:
            power.set_state(ctx, instance, AdminState.DOWN, disks_active=True)
        else:
            instance_disks.shutdown(ctx, instance)
