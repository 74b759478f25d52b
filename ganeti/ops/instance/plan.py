"""What a new instance will look like: its parts, from what was asked for.

Reads the configuration and reserves names and addresses; touches no node.
"""

from __future__ import annotations

import ipaddress
import re
import uuid
from pathlib import Path

from ganeti import constants, errors
from ganeti.base.text import natural_sorted
from ganeti.model.disk import Disk
from ganeti.model.names import DiskMode, DiskTemplate
from ganeti.model.nic import Nic
from ganeti.model.node import Node
from ganeti.opcodes.devices import DiskParams, NicParams
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.operation import Context
from ganeti.storage.interface import PlanRequest
from ganeti.storage.registry import TEMPLATES

#: Keys of a disk that every template knows.
_DISK_KEYS = ("size", "mode", "name", "spindles", "vg", "metavg", "adopt")
_MAC = re.compile(r"^[0-9a-f]{2}(:[0-9a-f]{2}){5}$")


def template(ctx: Context, op: OpInstanceCreate) -> DiskTemplate:
    """The disk template; the cluster's first one when none is given."""
    enabled = ctx.config.cluster.enabled_disk_templates
    if op.disk_template is None:
        if not op.disks and "diskless" in enabled:
            return DiskTemplate.DISKLESS
        return DiskTemplate(enabled[0])
    wanted = str(op.disk_template)
    if wanted not in enabled:
        raise errors.OpPrereqError(
            f"disk template {wanted} is not enabled in this cluster; enabled:"
            f" {', '.join(natural_sorted(enabled))}",
            errors.ErrorCode.INVAL,
        )
    return DiskTemplate(wanted)


def disks(
    ctx: Context, op: OpInstanceCreate, name: str, kind: DiskTemplate, nodes: list[Node]
) -> list[Disk]:
    """Disk objects of a new instance, with their places.

    Raises:
        OpPrereqError: a size is missing, too many disks, a directory that is not allowed.
    """
    if kind is DiskTemplate.DISKLESS:
        if op.disks:
            raise errors.OpPrereqError(
                "a diskless instance has no disks; leave --disk away", errors.ErrorCode.INVAL
            )
        return []
    if not op.disks:
        raise errors.OpPrereqError(
            f"an instance of template {kind} needs a disk, as in --disk 0:size=10G",
            errors.ErrorCode.INVAL,
        )
    if len(op.disks) > constants.MAX_DISKS:
        raise errors.OpPrereqError(
            f"an instance has at most {constants.MAX_DISKS} disks, not {len(op.disks)}",
            errors.ErrorCode.INVAL,
        )
    directory = _file_directory(ctx, op, kind)
    return [
        _disk(ctx, op, name, kind, index, item, nodes, directory)
        for index, item in enumerate(op.disks)
    ]


def space(
    ctx: Context, op: OpInstanceCreate, kind: DiskTemplate, disks: list[Disk]
) -> list[tuple[str, str, int]]:
    """Storage types, units and MiB that the disks take there; none if the template has no limit."""
    if not disks:
        return []
    traits = TEMPLATES.get(kind).traits
    if traits.space_checked_as is None:
        return []
    if traits.file_based:
        needed = sum(disk.size for disk in disks)
        return [(traits.space_checked_as, _file_directory(ctx, op, kind), needed)]
    units: dict[str, int] = {}
    for disk in disks:
        for leaf in disk.children or (disk,):
            group = str(leaf.logical_id[0])
            units[group] = units.get(group, 0) + leaf.size
    return [(traits.space_checked_as, group, needed) for group, needed in units.items()]


def _disk(
    ctx: Context,
    op: OpInstanceCreate,
    name: str,
    kind: DiskTemplate,
    index: int,
    item: DiskParams,
    nodes: list[Node],
    directory: str,
) -> Disk:
    if item.ext:
        unknown = ", ".join(sorted(item.ext))
        raise errors.OpPrereqError(
            f"disk {index}: unknown key {unknown}; disks of template {kind} take no others than"
            f" {', '.join(_DISK_KEYS)}",
            errors.ErrorCode.INVAL,
        )
    if not item.size:
        raise errors.OpPrereqError(
            f"disk {index} has no size, as in --disk {index}:size=10G", errors.ErrorCode.INVAL
        )
    if item.adopt is not None:
        raise errors.OpPrereqError(
            f"disks of template {kind} cannot be adopted", errors.ErrorCode.INVAL
        )
    disk_uuid = str(uuid.uuid4())
    driver = TEMPLATES.get(kind)
    request = PlanRequest(
        instance_name=name,
        disk_uuid=str(uuid.uuid4()),
        index=index,
        size=item.size,
        nodes=[node.uuid for node in nodes],
        file_driver=str(op.file_driver or "loop"),
        file_dir=directory,
        vg=item.vg or ctx.config.cluster.volume_group_name or "",
    )
    return Disk(
        uuid=disk_uuid,
        dev_type=kind,
        logical_id=tuple(driver.plan(request)),
        nodes=tuple(node.uuid for node in nodes),
        iv_name=f"disk/{index}",
        size=item.size,
        mode=DiskMode(item.mode or DiskMode.RW),
        name=item.name,
        spindles=item.spindles,
        params={},
    )


def _file_directory(ctx: Context, op: OpInstanceCreate, kind: DiskTemplate) -> str:
    """Directory below which the template puts an instance's directory; empty if it has none."""
    if not TEMPLATES.get(kind).traits.file_based:
        if op.file_storage_dir or op.file_driver:
            raise errors.OpPrereqError(
                f"a file storage directory or driver makes no sense for disk template {kind}",
                errors.ErrorCode.INVAL,
            )
        return ""
    cluster = ctx.config.cluster
    root = cluster.file_storage_dir
    if kind is DiskTemplate.SHAREDFILE:
        root = cluster.shared_file_storage_dir
    if not root:
        raise errors.OpPrereqError(
            f"the cluster has no directory for template {kind}", errors.ErrorCode.STATE
        )
    part = op.file_storage_dir or ""
    if part.startswith("/") or ".." in Path(part).parts or "\0" in part:
        raise errors.OpPrereqError(
            f"file storage directory '{part}' must be a path below {root}, without '..'",
            errors.ErrorCode.INVAL,
        )
    return str(Path(root, part))


def nics(ctx: Context, op: OpInstanceCreate) -> list[Nic]:
    """Network cards of a new instance; MAC addresses are reserved for the job.

    Raises:
        OpPrereqError, ReservationError: a value cannot be used, an address is taken.
    """
    if len(op.nics) > constants.MAX_NICS:
        raise errors.OpPrereqError(
            f"an instance has at most {constants.MAX_NICS} network cards, not {len(op.nics)}",
            errors.ErrorCode.INVAL,
        )
    return [_nic(ctx, index, item) for index, item in enumerate(op.nics)]


def _nic(ctx: Context, index: int, item: NicParams) -> Nic:
    config = ctx.config
    network = None if item.network in (None, "none") else config.network(str(item.network))
    own = {
        key: value
        for key, value in (
            ("mode", item.mode),
            ("link", item.link or item.bridge),
            ("vlan", item.vlan),
        )
        if value not in (None, "default")
    }
    mode = {**config.cluster.nicparams.get("default", {}), **own}.get("mode")
    if mode not in ("bridged", "routed", "openvswitch", "ext"):
        raise errors.OpPrereqError(
            f"network card {index}: unknown mode '{mode}'; known are bridged, routed,"
            " openvswitch, ext",
            errors.ErrorCode.INVAL,
        )
    ip = None if item.ip in (None, "none") else str(item.ip)
    if ip is not None:
        _check_ip(index, ip)
    elif mode == "routed" and network is None:
        raise errors.OpPrereqError(
            f"network card {index}: mode routed needs an IP address", errors.ErrorCode.INVAL
        )
    mac = (item.mac or "auto").lower()
    if mac not in ("auto", "generate") and not _MAC.match(mac):
        raise errors.OpPrereqError(
            f"network card {index}: '{item.mac}' is no MAC address", errors.ErrorCode.INVAL
        )
    prefix = (network.mac_prefix if network else None) or config.cluster.mac_prefix
    return Nic(
        uuid=str(uuid.uuid4()),
        mac=ctx.reservations.mac(mac, config, prefix, ctx.job.job_id),
        ip=ip,
        nicparams=own,
        network=None if network is None else network.uuid,
        name=None if item.name in (None, "none") else item.name,
    )


def _check_ip(index: int, text: str) -> None:
    if text == "pool":
        raise errors.OpPrereqError(
            f"network card {index}: addresses from a pool need network operations, which this"
            " version does not have yet; give the address itself",
            errors.ErrorCode.INVAL,
        )
    try:
        ipaddress.ip_address(text)
    except ValueError as err:
        raise errors.OpPrereqError(
            f"network card {index}: '{text}' is no IP address", errors.ErrorCode.INVAL
        ) from err
