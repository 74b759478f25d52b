"""The layout of new disks: their parts and places, from the request.

Reads the configuration and reserves minors for the job; touches no node.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ganeti import constants, errors
from ganeti.base.text import natural_sorted
from ganeti.config import drbd
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskMode, DiskTemplate
from ganeti.model.ids import DiskUuid, NodeUuid
from ganeti.opcodes.devices import DiskParams
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.operation import Context
from ganeti.ops.planning import checks
from ganeti.storage.interface import MirrorPlace, PlanRequest
from ganeti.storage.registry import TEMPLATES, traits_of, volume_templates

#: Keys of a disk that every template knows.
_DISK_KEYS = (
    "size",
    "mode",
    "name",
    "spindles",
    "max_iops",
    "max_bandwidth",
    "vg",
    "metavg",
    "adopt",
)


@dataclass(frozen=True)
class Layout:
    """The common properties of the new disks of an instance."""

    #: name of the instance
    instance: str
    kind: DiskTemplate
    #: uuids, the primary node first
    nodes: tuple[NodeUuid, ...]
    file_driver: str = "loop"
    #: directory below which the template puts the instance's own; empty if it has none
    file_dir: str = ""


def template(ctx: Context, op: OpInstanceCreate) -> DiskTemplate:
    """The disk template; the cluster's first one when none is given."""
    enabled = ctx.config.cluster.enabled_disk_templates
    if op.disk_template is None:
        if not op.disks and "diskless" in enabled:
            return DiskTemplate.DISKLESS
        return DiskTemplate(enabled[0])
    return enabled_template(ctx, str(op.disk_template))


def enabled_template(ctx: Context, wanted: str) -> DiskTemplate:
    """A disk template that the cluster uses; OpPrereqError for any other."""
    enabled = ctx.config.cluster.enabled_disk_templates
    if wanted not in enabled:
        raise errors.make_invalid_error(
            f"disk template {wanted} is not enabled in this cluster; enabled:"
            f" {', '.join(natural_sorted(enabled))}"
        )
    return DiskTemplate(wanted)


def template_of_disk(ctx: Context, wanted: str, disk: str) -> DiskTemplate:
    """A disk template that the cluster uses and disks have; OpPrereqError, ``disk`` names it."""
    found = enabled_template(ctx, wanted)
    if found is DiskTemplate.DISKLESS:
        raise errors.make_invalid_error(f"{disk} cannot have the template diskless")
    return found


def check_diskless(kind: DiskTemplate | None, wanted: Sequence[DiskParams]) -> None:
    """Refuse disks for an instance that is to have none; OpPrereqError."""
    if kind is DiskTemplate.DISKLESS and wanted:
        raise errors.make_invalid_error("a diskless instance has no disks; omit --disk")


def layout(
    ctx: Context,
    instance: str,
    kind: DiskTemplate,
    nodes: Sequence[NodeUuid],
    *,
    file_driver: str | None = None,
    file_storage_dir: str | None = None,
) -> Layout:
    """The common properties of disks of a template on these nodes.

    Raises:
        OpPrereqError: a wrong number of nodes, a directory that is not allowed or makes no sense.
    """
    if kind is DiskTemplate.DISKLESS:
        return Layout(instance, kind, tuple(nodes))
    traits = TEMPLATES.get(kind).traits
    if len(nodes) < traits.nodes_needed:
        raise errors.make_invalid_error(
            f"disk template {kind} needs a secondary node; name it as in --node node1:node2"
        )
    if len(set(nodes)) > traits.nodes_needed:
        raise errors.make_invalid_error(
            f"disk template {kind} keeps no copy on a second node; omit the secondary node"
        )
    if len(set(nodes)) < len(nodes):
        raise errors.make_invalid_error("the secondary node cannot be the primary node")
    return Layout(
        instance,
        kind,
        tuple(nodes),
        file_driver or "loop",
        _file_directory(ctx, kind, file_driver, file_storage_dir),
    )


def disks(ctx: Context, layout: Layout, wanted: Sequence[DiskParams]) -> list[Disk]:
    """Disks of a new instance, with their places.

    Raises:
        OpPrereqError: a size is missing, too many disks, keys that make no sense.
    """
    check_diskless(layout.kind, wanted)
    if layout.kind is DiskTemplate.DISKLESS:
        return []
    if not wanted:
        raise errors.make_invalid_error(
            f"an instance of template {layout.kind} needs a disk, as in --disk 0:size=10G"
        )
    if len(wanted) > constants.MAX_DISKS:
        raise errors.make_invalid_error(
            f"an instance has at most {constants.MAX_DISKS} disks, not {len(wanted)}"
        )
    return [disk(ctx, layout, index, item) for index, item in enumerate(wanted)]


def disk(ctx: Context, layout: Layout, index: int, item: DiskParams) -> Disk:
    """One new disk; its size must be given. OpPrereqError for keys that make no sense."""
    kind = layout.kind
    traits = TEMPLATES.get(kind).traits
    if item.ext and not traits.takes_options:
        unknown = ", ".join(sorted(item.ext))
        raise errors.make_invalid_error(
            f"disk {index}: unknown key {unknown}; disks of template {kind} take no others than"
            f" {', '.join(_DISK_KEYS)}"
        )
    _check_options(layout, index, item)
    if not item.size:
        raise errors.make_invalid_error(f"disk {index} has no size, as in --disk {index}:size=10G")
    if item.adopt is not None and not traits.may_adopt:
        raise errors.make_invalid_error(f"disks of template {kind} cannot be adopted")
    if (item.vg or item.metavg) and traits.file_based:
        raise errors.make_invalid_error(
            f"disk {index}: disks of template {kind} lie in no volume group"
        )
    driver = TEMPLATES.get(kind)
    request = PlanRequest(
        instance_name=layout.instance,
        disk_uuid=DiskUuid(str(uuid.uuid4())),
        index=index,
        size=item.size,
        nodes=layout.nodes,
        file_driver=layout.file_driver,
        file_dir=layout.file_dir,
        vg=_volume_group(ctx, layout, index, item),
        metavg=item.metavg or _meta_group(ctx, layout),
        adopt=item.adopt or "",
        options=_options(item),
        mirror=_mirror(ctx, layout),
    )
    nodes = () if traits.shared else layout.nodes
    if item.spindles is not None:
        checks.spindles_count(ctx.config, f"disk {index}", nodes)
    return Disk(
        uuid=DiskUuid(str(uuid.uuid4())),
        dev_type=kind,
        logical_id=tuple(driver.plan(request)),
        children=tuple(
            Disk(
                uuid=DiskUuid(str(uuid.uuid4())),
                dev_type=DiskTemplate(child.dev_type),
                logical_id=child.logical_id,
                nodes=nodes,
                size=child.size,
                params={},
            )
            for child in driver.plan_children(request)
        ),
        nodes=nodes,
        iv_name=f"disk/{index}",
        size=item.size,
        mode=DiskMode(item.mode or DiskMode.RW),
        name=None if item.name == "none" else item.name,
        spindles=item.spindles,
        max_iops=item.max_iops or 0,
        max_bandwidth=item.max_bandwidth or 0,
        params=dict(driver.plan_params(request)),
    )


def _check_options(layout: Layout, index: int, item: DiskParams) -> None:
    """Refuse keys that the template would ignore."""
    driver = TEMPLATES.get(layout.kind)
    if item.dev_type not in (None, str(layout.kind)):
        raise errors.make_invalid_error(
            f"disk {index} has dev_type {item.dev_type}, but template {layout.kind} was requested;"
            " disks of other templates can be added later"
        )
    if item.provider is not None and not driver.traits.takes_options:
        raise errors.make_invalid_error(
            f"disk {index}: disks of template {layout.kind} have no provider"
        )
    if item.access is None:
        return
    if "access" not in driver.params.__struct_fields__:
        raise errors.make_invalid_error(
            f"disk {index}: disks of template {layout.kind} are accessed in one way only"
        )
    if item.access not in ("kernelspace", "userspace"):
        raise errors.make_invalid_error(
            f"disk {index}: access is kernelspace or userspace, not '{item.access}'"
        )


def _options(item: DiskParams) -> dict[str, str]:
    """Keys that only some templates know."""
    given = {"access": item.access, "provider": item.provider, **item.ext}
    return {key: str(value) for key, value in given.items() if value is not None}


def _mirror(ctx: Context, layout: Layout) -> MirrorPlace | None:
    """Minors and secret of a mirrored disk; its port is given when it is recorded."""
    if not TEMPLATES.get(layout.kind).traits.mirrored:
        return None
    first, second = ctx.claims.claim_minors(layout.nodes, lambda: ctx.config, ctx.job.job_id)
    return MirrorPlace((first, second), drbd.new_secret())


def _volume_group(ctx: Context, layout: Layout, index: int, item: DiskParams) -> str:
    group = item.vg or ctx.config.cluster.volume_group_name or ""
    if not group and layout.kind in volume_templates():
        raise errors.make_invalid_error(
            f"disk {index}: the cluster has no volume group; name one with"
            f" --disk {index}:size=10G,vg=NAME or gnt-cluster modify --vg-name NAME"
        )
    return group


def _meta_group(ctx: Context, layout: Layout) -> str:
    """Volume group of a mirror's metadata when the disk names none."""
    config = ctx.config
    group = config.nodes[layout.nodes[0]].group
    return str(config.diskparams(layout.kind, group).get("metavg", ""))


def _file_directory(
    ctx: Context, kind: DiskTemplate, file_driver: str | None, part: str | None
) -> str:
    """Directory below which the template puts an instance's directory; empty if it has none."""
    if not TEMPLATES.get(kind).traits.file_based:
        if part or file_driver:
            raise errors.make_invalid_error(
                f"a file storage directory or driver makes no sense for disk template {kind}"
            )
        return ""
    root = getattr(ctx.config.cluster, traits_of(kind).directory)
    if not root:
        raise errors.make_state_error(f"the cluster has no directory for template {kind}")
    below = part or ""
    if below.startswith("/") or ".." in Path(below).parts or "\0" in below:
        raise errors.make_invalid_error(
            f"file storage directory '{below}' must be a path below {root}, without '..'"
        )
    return str(Path(root, below))


def move_into_directory(layout: Layout, directory: str) -> Layout:
    """The layout with its files in (not below) a directory of the instance. Pure."""
    return replace(layout, instance=Path(directory).name, file_dir=str(Path(directory).parent))


def put_on_nodes(ctx: Context, disk: Disk, nodes: Sequence[NodeUuid]) -> Disk:
    """A disk on other nodes (uuids, primary first), with its names, port and secret.

    It uses as many of them as its template needs. Minors on nodes where a DRBD disk stays are kept,
    others are reserved for the job. A disk that every node reaches stays as it is.
    """
    if not disk.nodes:
        return disk
    nodes = nodes[: TEMPLATES.get(disk.real_template).traits.nodes_needed]
    logical_id = disk.logical_id
    if drbd.is_drbd(disk):
        known = dict(drbd.minors(disk))
        fresh = [uuid for uuid in nodes if uuid not in known]
        minors = ctx.claims.claim_minors(fresh, lambda: ctx.config, ctx.job.job_id)
        known.update(zip(fresh, minors))
        _first, _second, port, _minor, _other, secret = logical_id
        logical_id = (*nodes, port, *(known[uuid] for uuid in nodes), secret)
    return base.replace(
        disk,
        nodes=tuple(nodes),
        logical_id=logical_id,
        children=tuple(base.replace(child, nodes=tuple(nodes)) for child in disk.children),
    )


def make_volumes(disk: Disk) -> tuple[Disk, ...]:
    """The volumes of a DRBD disk under names that nothing has yet. Pure."""
    name = str(uuid.uuid4())
    index = disk.iv_name.rpartition("/")[2]
    return tuple(
        base.replace(child, logical_id=(child.logical_id[0], f"{name}.disk{index}_{kind}"))
        for child, kind in zip(disk.children, ("data", "meta"))
    )
