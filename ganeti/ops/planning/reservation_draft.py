"""Draft of a reservation for the configuration, from the request.

Reads the configuration and reserves addresses and minors for the job; touches no node.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ganeti import errors
from ganeti.config import parameters
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskMode, DiskTemplate, HypervisorName
from ganeti.model.ids import DiskUuid, GroupUuid, InstanceUuid, NodeUuid
from ganeti.model.instance import Instance, Reservation
from ganeti.model.nic import Nic
from ganeti.model.node import Node
from ganeti.opcodes.devices import DiskParams
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.hidden import reveal_all
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.operation import Context
from ganeti.ops.planning import checks, cloud_init_settings, disk_layout, nics, policy
from ganeti.ops.planning import tags as tag_rules

#: Keys of a disk that wait in its parameters until it has a place.
_LATER = ("vg", "metavg", "provider", "access")


@dataclass(frozen=True)
class Drafted:
    """A forthcoming instance with its disks, not recorded yet."""

    instance: Instance
    disks: list[Disk]


def check_request(op: OpInstanceCreate) -> None:
    """Refuse what cannot be reserved; OpPrereqError."""
    if op.mode is not InstCreateMode.CREATE:
        raise errors.make_invalid_error(
            f"creation mode {op.mode} cannot be reserved; only create can"
        )
    if any(disk.adopt for disk in op.disks):
        raise errors.make_invalid_error(
            "a disk that exists cannot be reserved; adopt it with gnt-instance add without"
            " --forthcoming"
        )
    if op.image or cloud_init_settings.is_asked_for(op):
        raise errors.make_invalid_error(
            "an image and data for cloud-init cannot be reserved; give them with gnt-instance add"
            " --commit"
        )
    if op.osparams_secret:
        raise errors.make_invalid_error(
            "secret OS parameters are stored nowhere, so they cannot be reserved; give them with"
            " gnt-instance add --commit"
        )


def draft(
    ctx: Context,
    op: OpInstanceCreate,
    uuid: InstanceUuid,
    nodes: Sequence[Node],
    reservation: Reservation,
) -> Drafted:
    """The instance and its disks on these nodes (the primary one first); without nodes no place.

    Raises:
        OpPrereqError, ReservationError, ParameterError: what cannot be.
    """
    tag_rules.check(op.tags)
    config = ctx.config
    name = checks.host_name(op.instance_name, "an instance") if op.instance_name else ""
    wanted = op.hypervisor or config.cluster.enabled_hypervisors[0]
    hypervisor = HypervisorName(checks.hypervisor_enabled(ctx, str(wanted)))
    own = parameters.change_own_backend(config, {}, op.beparams)
    os_name = op.os_type or ""
    disks = _disks(ctx, op, name or uuid, nodes)
    if op.disk_template is not None:
        template = disk_layout.enabled_template(ctx, str(op.disk_template))
        reservation = base.replace(reservation, disk_template=template)
    instance = Instance(
        uuid=InstanceUuid(uuid),
        name=name,
        primary_node=nodes[0].uuid if nodes else NodeUuid(""),
        os=os_name,
        hypervisor=hypervisor,
        hvparams=checks.check_hvparams(ctx, hypervisor, os_name, {}, op.hvparams),
        beparams=own,
        osparams=dict(op.osparams),
        osparams_private=reveal_all(op.osparams_private),
        nics=tuple(_nics(ctx, op, nodes)),
        disks=tuple(disk.uuid for disk in disks),
        tags=tuple(sorted(set(op.tags))),
        forthcoming=True,
        reservation=reservation,
    )
    if nodes:
        shape = policy.shape(config, instance, disks)
        checks.shape_allowed(ctx, nodes[0].group, shape, ignore=op.ignore_ipolicy)
    return Drafted(instance, disks)


def _nics(ctx: Context, op: OpInstanceCreate, nodes: Sequence[Node]) -> list[Nic]:
    """NICs; without a node those that at least one group can have."""
    if not op.nics:
        return []
    groups = [nodes[0].group] if nodes else list(ctx.config.groups)
    if op.group_name is not None and not nodes:
        groups = [ctx.config.group(op.group_name).uuid]
    for group in groups[:-1]:
        try:
            return nics.all_new(ctx, op.nics, group, check_conflicts=op.conflicts_check)
        except errors.OpPrereqError:
            continue
    return nics.all_new(ctx, op.nics, groups[-1], check_conflicts=op.conflicts_check)


def hypervisor_of(ctx: Context, instance: Instance) -> str:
    """The hypervisor of a reservation, or the default one that it gets."""
    return str(instance.hypervisor or ctx.config.cluster.enabled_hypervisors[0])


# disks -----------------------------------------------------------------------------------------


def _disks(ctx: Context, op: OpInstanceCreate, handle: str, nodes: Sequence[Node]) -> list[Disk]:
    if nodes:
        template = disk_layout.template(ctx, op)
        if not op.disks:
            return []
        return place_disks(
            ctx,
            handle,
            template,
            [node.uuid for node in nodes],
            op.disks,
            file_driver=op.file_driver,
            file_storage_dir=op.file_storage_dir,
        )
    if op.file_driver or op.file_storage_dir:
        raise errors.make_invalid_error(
            "a file storage directory or driver needs a node; name one with --node"
        )
    disk_layout.check_diskless(op.disk_template, op.disks)
    group = None if op.group_name is None else ctx.config.group(op.group_name).uuid
    for index, item in enumerate(op.disks):
        check_spindles(ctx.config, index, item, [], group)
    given = None if op.disk_template is None else DiskTemplate(op.disk_template)
    return [make_unplaced_disk(given, index, item) for index, item in enumerate(op.disks)]


def place_disks(
    ctx: Context,
    handle: str,
    template: DiskTemplate,
    nodes: Sequence[NodeUuid],
    wanted: Sequence[DiskParams],
    *,
    file_driver: str | None = None,
    file_storage_dir: str | None = None,
) -> list[Disk]:
    """Forthcoming disks with their places on nodes (uuids, the primary one first)."""
    layout = disk_layout.layout(
        ctx,
        handle,
        template,
        nodes,
        file_driver=file_driver,
        file_storage_dir=file_storage_dir,
    )
    found = disk_layout.disks(ctx, layout, wanted)
    return [base.replace(disk, forthcoming=True) for disk in found]


def make_unplaced_disk(template: DiskTemplate | None, index: int, item: DiskParams) -> Disk:
    """A forthcoming disk without a place."""
    wire = item.to_wire()
    later = {key: str(wire[key]) for key in (*_LATER, *item.ext) if wire.get(key) is not None}
    return Disk(
        uuid=DiskUuid(str(uuids.uuid4())),
        dev_type=template,
        iv_name=f"disk/{index}",
        size=item.size or 0,
        mode=DiskMode(item.mode or DiskMode.RW),
        name=None if item.name == "none" else item.name,
        spindles=item.spindles,
        max_iops=item.max_iops or 0,
        max_bandwidth=item.max_bandwidth or 0,
        params=later or None,
        forthcoming=True,
    )


def check_spindles(
    config: Config,
    index: int,
    item: DiskParams,
    nodes: Collection[NodeUuid],
    group: GroupUuid | None = None,
) -> None:
    """Refuse spindles that cannot be counted where the disk will be; OpPrereqError.

    That is on ``nodes`` (uuids); without them on some nodes of the group, or of the cluster.
    """
    if item.spindles is None:
        return
    possible = config.nodes if group is None else [node.uuid for node in config.group_nodes(group)]
    exclusive = [
        uuid for uuid in possible if config.ndparams(config.nodes[uuid]).get("exclusive_storage")
    ]
    checks.spindles_count(config, f"disk {index}", nodes or exclusive)


def request_of(disk: Disk) -> DiskParams:
    """Make the request for such a disk at another place."""
    later = dict(disk.params or {}) if not disk.logical_id else {}
    known = {key: later.pop(key) for key in _LATER if key in later}
    return DiskParams(
        size=disk.size or None,
        mode=disk.mode,
        name=disk.name,
        spindles=disk.spindles,
        max_iops=disk.max_iops or None,
        max_bandwidth=disk.max_bandwidth or None,
        ext=later,
        **known,
    )
