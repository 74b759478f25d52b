"""Create an instance."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config import parameters
from ganeti.config.changes import Draft
from ganeti.constants import OS_IMAGE
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.enums import AdminState, DiskTemplate, HypervisorName
from ganeti.model.ids import InstanceUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.devices import NicParams
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.hidden import reveal_all
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.allocator.new_place import NewPlace
from ganeti.ops.on_reservations.commit import InstanceCommit
from ganeti.ops.on_reservations.reserve import InstanceReserve
from ganeti.ops.operation import Context, Finding, FindingOperation, Hooks, Operation
from ganeti.ops.planning import (
    checks,
    cloud_init_settings,
    communication_nic,
    disk_layout,
    images,
    import_settings,
    nics,
    policy,
)
from ganeti.ops.planning import tags as tag_rules
from ganeti.ops.steps import host_names, importing
from ganeti.ops.steps.creation import Creation, CreationPlan
from ganeti.ops.steps.importing import Source
from ganeti.ops.steps.storage import adoption
from ganeti.ops.targets import network as networks


@dataclass(frozen=True)
class _Found:
    #: the request, with what an export says where it is open
    op: OpInstanceCreate
    name: str
    #: the primary one first
    nodes: list[Node]
    #: the NICs that are requested, with the communication NIC
    nics: Sequence[NicParams]
    #: the export that the content comes from
    source: Source | None = None


class InstanceCreate(FindingOperation[OpInstanceCreate, _Found, list[str]], Creation):
    """On named nodes, or on nodes that an allocator chooses."""

    is_reserved = False

    @classmethod
    def variant(cls, op: OpInstanceCreate, ctx: Context) -> type[Operation[OpInstanceCreate, Any]]:
        if op.commit:
            return InstanceCommit
        if op.forthcoming:
            return InstanceReserve
        return _InstanceImport if op.disk_sources or op.mode is not InstCreateMode.CREATE else cls

    @classmethod
    def check_submission(cls, op: OpInstanceCreate) -> None:
        if op.disk_sources and (op.forthcoming or op.commit):
            raise errors.make_invalid_error(
                "a reservation has no content yet: omit disk_sources, or --forthcoming and --commit"
            )
        if op.forthcoming and op.commit:
            raise errors.make_invalid_error(
                "give either --forthcoming, which reserves, or --commit, which creates what was"
                " reserved"
            )

    def find(self) -> Finding[_Found]:
        op = self.op
        given = checks.host_name(op.instance_name, "an instance")
        name = host_names.choose_name(given, name_check=op.name_check, ip_check=op.ip_check)
        if self.ctx.config.has_instance_name(name):
            raise errors.make_exists_error(f"instance '{name}' exists already")
        importing.check_request(self.ctx, op)
        source = None
        if op.mode is InstCreateMode.IMPORT:
            source = importing.find(self.ctx, op, name)
            op = import_settings.complete(self.ctx.config, op, name, source.export, self.ctx.log)
        place = NewPlace(self.ctx, op, name)
        yield Need(LockLevel.INSTANCE, (), new=[name])
        nodes = yield from place.find()
        # the space that is checked is still free when the disks are made
        yield Need(LockLevel.NODE_RES, sorted({node.uuid for node in nodes}))
        wanted = communication_nic.all_nics(self.ctx.config, op)
        yield from networks.lock_used(self.ctx, (nic.network for nic in wanted))
        return _Found(op, name, nodes, wanted, source)

    @property
    def request(self) -> OpInstanceCreate:
        return self.found.op

    # check -------------------------------------------------------------------------------

    def decide(self) -> CreationPlan:
        op, ctx, found = self.request, self.ctx, self.found
        primary = found.nodes[0]
        self._check_request()
        for node in found.nodes:
            checks.check_usable(node, "for a new instance")
        new_instance = self._instance()
        template = disk_layout.template(ctx, op)
        layout = disk_layout.layout(
            ctx,
            found.name,
            template,
            [node.uuid for node in found.nodes],
            file_driver=op.file_driver,
            file_storage_dir=op.file_storage_dir,
        )
        adopts = adoption.is_asked_for(op.disks)
        wanted = adoption.read_sizes(ctx, primary, template, op.disks) if adopts else op.disks
        disks = disk_layout.disks(ctx, layout, wanted)
        all_nics = nics.all_new(ctx, found.nics, primary.group, check_conflicts=op.conflicts_check)
        uuids = tuple(disk.uuid for disk in disks)
        instance = base.replace(new_instance, nics=tuple(all_nics), disks=uuids)
        self._check_policy(instance, disks, template)
        image = images.choose_for(ctx.config, op, disks, adopts=adopts)
        images.check_sources(op, disks, adopts=adopts)
        plan = CreationPlan(instance, disks, found.nodes, template, adopts, image)
        self.check_node(plan)
        return plan

    def _check_request(self) -> None:
        op = self.request
        image = op.image or op.disk_sources or op.osparams.get(OS_IMAGE)
        without_os = not op.os_type and not op.no_install and not image
        if without_os and op.mode is InstCreateMode.CREATE:
            raise errors.make_invalid_error(
                "no guest OS was given; name one with --os-type or an image with --image, or use"
                " --no-install"
            )
        tag_rules.check(op.tags)
        twice = sorted(set(op.osparams) & set(op.osparams_private or {}))
        if twice:
            raise errors.make_invalid_error(f"OS parameter '{twice[0]}' is given more than once")
        if op.no_install and op.start:
            self.ctx.log("Without an OS the instance is not started")

    def _instance(self) -> Instance:
        """The instance, still without disks and NICs; OpPrereqError, ParameterError."""
        op, ctx = self.request, self.ctx
        default = ctx.config.cluster.enabled_hypervisors[0]
        hypervisor = HypervisorName(checks.hypervisor_enabled(ctx, str(op.hypervisor or default)))
        os_name = op.os_type or ""
        return Instance(
            uuid=InstanceUuid(str(uuid.uuid4())),
            name=self.found.name,
            primary_node=self.found.nodes[0].uuid,
            os=os_name,
            hypervisor=hypervisor,
            hvparams=self._choose_own(
                checks.check_hvparams(ctx, hypervisor, os_name, {}, op.hvparams),
                ctx.config.hvparams_for(hypervisor, os_name, {}),
            ),
            beparams=self._choose_own(
                parameters.change_own_backend(ctx.config, {}, op.beparams),
                ctx.config.beparams_for({}),
            ),
            osparams=self._choose_own(dict(op.osparams), ctx.config.osparams_for(os_name, {})),
            osparams_private=reveal_all(op.osparams_private),
            admin_state=AdminState.DOWN,
            image=images.find_uuid(ctx.config, op),
            cloud_init=cloud_init_settings.make(op, hypervisor),
            tags=tuple(sorted(set(op.tags))),
        )

    def _choose_own(self, values: JsonObject, defaults: JsonObject) -> JsonObject:
        """Values to record: with ``identify_defaults`` only those that the cluster has not."""
        if not self.request.identify_defaults:
            return values
        return {
            key: value
            for key, value in values.items()
            if key not in defaults or defaults[key] != value
        }

    def _check_policy(
        self, instance: Instance, disks: Sequence[Disk], template: DiskTemplate
    ) -> None:
        shape = policy.shape(self.ctx.config, instance, disks, template)
        group = self.found.nodes[0].group
        checks.shape_allowed(self.ctx, group, shape, ignore=self.request.ignore_ipolicy)

    def hooks(self) -> Hooks:
        hooks, source = super().hooks(), self.found.source
        if source is None:
            return hooks
        more = {
            "SRC_NODE": source.node.name,
            "SRC_PATH": source.path,
            "SRC_IMAGES": source.images(),
        }
        return replace(hooks, env={**hooks.env, **more})

    # run ---------------------------------------------------------------------------------

    def fill(self, instance: Instance, disks: Sequence[Disk]) -> None:
        ctx, op, source = self.ctx, self.request, self.found.source
        if op.mode is InstCreateMode.CREATE:
            super().fill(instance, disks)
            return
        wire, primary = self.activate(instance, disks), self.plan.nodes[0]
        if source is not None:
            importing.fill_from_export(ctx, source, primary, wire, op.compress)
        else:
            importing.fill_from_cluster(ctx, op, primary, wire)

    def record(self) -> tuple[Instance, list[Disk]]:
        ctx, plan = self.ctx, self.plan
        needs_port = HYPERVISORS.get(plan.instance.real_hypervisor).traits.needs_port

        def edit(draft: Draft) -> tuple[Instance, list[Disk]]:
            port = draft.allocate_port() if needs_port else None
            instance = base.replace(plan.instance, network_port=port)
            disks = [draft.number_disk(disk) for disk in plan.disks]
            draft.add_instance(
                base.replace(instance, forthcoming=True, creating=ctx.job.job_id),
                [base.replace(disk, forthcoming=True) for disk in disks],
            )
            return instance, disks

        def undo(draft: Draft) -> None:
            draft.remove_instance(plan.instance)

        recorded = ctx.store.change("instance-promise", ctx.author, edit)
        ctx.undo.callback(ctx.store.change, "instance-add-undone", ctx.author, undo)
        return recorded


class _InstanceImport(InstanceCreate):
    """The content comes from files, an export or another cluster; the copy can be canceled."""

    cancelable = True
