"""Which detached disk is meant, and whether an instance can use it where it is."""

from __future__ import annotations

from collections.abc import Iterable

from ganeti import errors
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.model.ids import DiskUuid
from ganeti.model.instance import Instance
from ganeti.opcodes.devices import DiskChange, DiskParams
from ganeti.opcodes.enums import DdmFull
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.planning import checks, disk_settings
from ganeti.ops.steps.storage import disks
from ganeti.rpc.calls import NodeCalls


def candidates(config: Config, changes: Iterable[DiskChange]) -> list[Disk]:
    """Every disk that one of the changes may want to attach, for locks. Pure."""
    found: dict[str, Disk] = {}
    for change in changes:
        if change.action is DdmFull.ATTACH:
            found.update((disk.uuid, disk) for disk in _matches(config, change.params))
    return list(found.values())


def _matches(config: Config, params: DiskParams) -> list[Disk]:
    uuid = params.ext.get("uuid")
    if uuid is not None:
        found = config.disks.get(DiskUuid(str(uuid)))
        return [] if found is None else [found]
    return [disk for disk in config.disks.values() if params.name and disk.name == params.name]


def find(config: Config, instance: Instance, index: int, params: DiskParams) -> Disk:
    """The detached disk that the parameters name. Pure.

    One that the instance itself has is found too: an earlier change may have detached it.

    Raises:
        OpPrereqError: none is named or known, it is attached, or several have the name.
    """
    given = sorted(params.to_wire())
    if given not in (["name"], ["uuid"]):
        but = f", not by {', '.join(given)}" if given else ""
        raise errors.make_invalid_error(
            f"disk {index}: say which disk to attach by either uuid= or name={but}"
        )
    wanted = params.ext.get("uuid") or params.name
    found = _matches(config, params)
    if not found:
        raise errors.make_unknown_error(f"disk '{wanted}' is not known, so it cannot be attached")
    owners = {disk.uuid: config.owner(disk.uuid) for disk in found}
    free = [disk for disk in found if owners[disk.uuid] in (None, instance)]
    if not free:
        names = ", ".join(sorted({owner.name for owner in owners.values() if owner}))
        raise errors.make_state_error(
            f"disk '{wanted}' belongs to an instance ({names}), so it cannot be attached"
        )
    if len(free) > 1:
        raise errors.make_not_unique_error(f"{len(free)} disks are called '{wanted}'; use the uuid")
    return free[0]


def check(ctx: Context, instance: Instance, disk: Disk) -> None:
    """Refuse a disk that the instance cannot use where it is; asks the nodes that hold it.

    Raises:
        OpPrereqError: it is only reserved, of a template that is not enabled or that the hypervisor
            cannot open, on other nodes than those of the instance, or not there at all.
    """
    config = ctx.config
    if disk.forthcoming:
        raise errors.make_state_error(
            f"disk {disk.uuid} is forthcoming: it was reserved, or its creation did not end; it"
            " cannot be attached"
        )
    enabled = config.cluster.enabled_disk_templates
    if disk.dev_type not in enabled:
        raise errors.make_state_error(
            f"disk {disk.uuid} has template {disk.dev_type}, which is not enabled in this cluster"
            f" (enabled are {', '.join(enabled)})"
        )
    _check_place(config, instance, disk)
    check_openable(config, instance, disk)
    nodes = disks.nodes_of(config, disk, instance.primary_node)
    checks.all_online(nodes, f"to attach disk {disk.uuid}")
    for node in nodes:
        parts = [annotate.disk(config, part, node.group) for part in disk.children or (disk,)]
        found = ctx.rpc.call_one(node, NodeCalls.blockdev_getdimensions, parts)
        if None in found:
            raise errors.make_state_error(
                f"disk {disk.uuid} ({disk.dev_type}) is not there on node {node.name}, so it"
                " cannot be attached; gnt-disk remove forgets it"
            )


def _check_place(config: Config, instance: Instance, disk: Disk) -> None:
    primary = instance.primary_node
    if disk.nodes and primary not in disk.nodes:
        names = ", ".join(config.nodes[uuid].name for uuid in disk.nodes)
        raise errors.make_state_error(
            f"disk {disk.uuid} is on {names}, but the primary node of {instance.name} is"
            f" {config.nodes[primary].name}"
        )
    others = set(config.secondary_nodes(instance))
    if disks.traits(disk).mirrored and others and not others <= set(disk.nodes):
        here, there = (
            ", ".join(config.nodes[uuid].name for uuid in sorted(uuids))
            for uuids in (others, set(disk.nodes) - {primary})
        )
        raise errors.make_state_error(
            f"disk {disk.uuid} has its second copy on {there}, but the secondary node of"
            f" {instance.name} is {here}; an instance has one secondary node"
        )


def check_openable(config: Config, instance: Instance, disk: Disk) -> None:
    """Refuse a disk that an instance's hypervisor cannot open or limit. Pure; OpPrereqError."""
    disk_settings.check_limits(instance.real_hypervisor, disk)
    group = config.nodes[instance.primary_node].group
    params = {**config.diskparams(disk.real_template, group), **(disk.params or {})}
    if params.get("access") != "userspace":
        return
    if not HYPERVISORS.get(instance.real_hypervisor).traits.opens_addresses:
        raise errors.make_state_error(
            f"disk {disk.uuid} ({disk.dev_type}) has access userspace, but hypervisor"
            f" {instance.hypervisor} of {instance.name} opens devices of the node only"
            " (access kernelspace)"
        )


def ties(config: Config, instance: Instance, fresh: Iterable[Disk]) -> str | None:
    """A warning when new disks would keep a movable instance on its node; None otherwise. Pure."""

    def movable(disk: Disk) -> bool:
        kind = disks.traits(disk)
        return kind.mirrored or kind.shared

    now = config.disks_of(instance)
    held = [disk for disk in fresh if disk.dev_type is not None and not movable(disk)]
    if not held or not now or not all(movable(disk) for disk in now):
        return None
    kinds = ", ".join(sorted({str(disk.dev_type) for disk in held}))
    template = config.disk_template(instance)
    return (
        f"with a disk of template {kinds} instance {instance.name} ({template}) cannot be migrated"
        " or failed over any more"
    )


def template_of_new(config: Config, instance: Instance, index: int, given: str | None) -> str:
    """Template of a new disk: the one given, else that of all disks there are. OpPrereqError."""
    if given is not None:
        return given
    kind = config.disk_template(instance)
    if kind == DiskTemplate.DISKLESS:
        raise errors.make_invalid_error(
            f"instance {instance.name} is diskless, so say how disk {index} is stored, as in"
            f" --disk {index}:add,size=10G,dev_type=plain"
        )
    kinds = sorted({str(disk.dev_type) for disk in config.disks_of(instance)})
    if len(kinds) > 1:
        raise errors.make_invalid_error(
            f"the disks of instance {instance.name} have several templates ({', '.join(kinds)});"
            f" say how disk {index} is stored, as in dev_type={kinds[0]}"
        )
    return kind
