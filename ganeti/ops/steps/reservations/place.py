"""Other nodes for a reservation: any, as there is nothing to copy."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.model.ids import GroupUuid, NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops.allocator import ask as allocator
from ganeti.ops.allocator.request import NewInstance
from ganeti.ops.operation import Context, Finding, Needs
from ganeti.ops.planning import checks, disk_layout, policy, reservation_draft
from ganeti.ops.planning.reservation_draft import Drafted
from ganeti.ops.steps.reservations import drafts
from ganeti.ops.targets import instance as instance_target
from ganeti.storage.registry import traits_of


def template_of(
    ctx: Context, instance: Instance, disks: Sequence[Disk] | None = None
) -> DiskTemplate:
    """The template that disks of a reservation have, or will get.

    ``disks`` are given when they are not in the configuration as they will be.
    """
    config = ctx.config
    if disks is None:
        disks = config.disks_of(instance)
    kinds = [disk.dev_type for disk in disks if disk.dev_type is not None]
    if kinds:
        return kinds[0]
    wanted = None if instance.reservation is None else instance.reservation.disk_template
    if wanted is not None:
        return wanted
    if not disks:
        return DiskTemplate.DISKLESS
    return DiskTemplate(config.cluster.enabled_disk_templates[0])


def nodes_needed(template: DiskTemplate) -> int:
    """How many nodes an instance with such disks has."""
    return traits_of(template).nodes_needed


def forthcoming(ctx: Context, name: str, uuid: str | None = None) -> Finding[Instance]:
    """Lock a reservation; returns it as it is once the lock is held.

    Raises:
        OpPrereqError: there is none, or it became an instance while the job waited.
    """
    found = yield from instance_target.lock(ctx, name, uuid)
    if not found.forthcoming:
        raise errors.make_state_error(
            f"the reservation '{found.handle}' became an instance while this job waited for it;"
            " try again"
        )
    return found


def lock_nodes(ctx: Context, nodes: Sequence[Node]) -> Needs:
    """Lock nodes, and what is free there until the change is recorded."""
    uuids = sorted({node.uuid for node in nodes})
    if uuids:
        yield Need(LockLevel.NODE, uuids, shared=True)
        yield Need(LockLevel.NODE_RES, uuids)


def read_recorded(ctx: Context, instance: Instance) -> Drafted:
    """A reservation with its disks, as the configuration has them."""
    return Drafted(instance, ctx.config.disks_of(instance))


def choose_nodes(
    ctx: Context,
    name: str,
    item: Drafted,
    groups: Sequence[GroupUuid],
    *,
    leave: Collection[NodeUuid] = (),
    ignore_ipolicy: bool = False,
) -> list[Node]:
    """Nodes that an allocator chooses in one of these groups (uuids); anywhere without groups.

    Nodes in ``leave`` (uuids) are not chosen.

    Raises:
        OpPrereqError: there is no place.
        OpExecError: the allocator cannot be used.
    """
    config = ctx.config
    among: list[str | None] = [config.groups[uuid].name for uuid in groups]
    among = among or [None]
    for group in among[:-1]:
        try:
            return _ask(ctx, name, item, group, leave, ignore_ipolicy)
        except errors.OpPrereqError as err:
            ctx.log(errors.text(err))
    return _ask(ctx, name, item, among[-1], leave, ignore_ipolicy)


def _ask(
    ctx: Context,
    name: str,
    item: Drafted,
    group: str | None,
    leave: Collection[NodeUuid],
    ignore_ipolicy: bool,
) -> list[Node]:
    instance = item.instance
    template = template_of(ctx, instance, item.disks)
    be = ctx.config.beparams(instance)
    new = NewInstance(
        name=instance.handle,
        template=str(template),
        memory=be["maxmem"],
        vcpus=be["vcpus"],
        spindle_use=be["spindle_use"],
        disks=[
            {
                "size": disk.size,
                "mode": str(disk.mode),
                "dev_type": str(disk.dev_type or template),
                "spindles": disk.spindles,
            }
            for disk in item.disks
        ],
        nics=[
            {"mac": nic.mac, "ip": nic.ip, "network": nic.network, "nicparams": nic.nicparams}
            for nic in instance.nics
        ],
        hypervisor=reservation_draft.hypervisor_of(ctx, instance),
        os=instance.os,
        tags=instance.tags,
        group_name=group,
        nodes=nodes_needed(template),
        ignore_policy=ignore_ipolicy,
    )
    among = None
    if leave:
        among = [node.name for node in ctx.config.nodes.values() if node.uuid not in leave]
    return allocator.place(ctx, name, new, among, without=instance.uuid)


def place_on(ctx: Context, item: Drafted, nodes: Sequence[Node]) -> Drafted:
    """The reservation on other nodes, the primary one first; nothing is recorded.

    Raises:
        OpPrereqError: too few or too many nodes, a network that the node group does not have.
    """
    config, instance = ctx.config, item.instance
    template = template_of(ctx, instance, item.disks)
    uuids = [node.uuid for node in nodes][: nodes_needed(template)]
    disk_layout.layout(ctx, instance.handle, template, uuids)
    group = nodes[0].group
    for index, nic in enumerate(instance.nics):
        if nic.network and nic.network not in config.groups[group].networks:
            raise errors.make_state_error(
                f"NIC {index}: network {config.networks[nic.network].name} is not"
                f" connected to node group {config.groups[group].name}; see gnt-network connect"
            )
    disks = [
        _place_disk(ctx, instance, template, index, disk, uuids)
        for index, disk in enumerate(item.disks)
    ]
    return Drafted(base.replace(instance, primary_node=NodeUuid(nodes[0].uuid)), disks)


def _place_disk(
    ctx: Context,
    instance: Instance,
    template: DiskTemplate,
    index: int,
    disk: Disk,
    nodes: Sequence[NodeUuid],
) -> Disk:
    if disk.logical_id:
        return disk_layout.put_on_nodes(ctx, disk, nodes)
    layout = disk_layout.layout(ctx, instance.handle, template, nodes)
    fresh = disk_layout.disk(ctx, layout, index, reservation_draft.request_of(disk))
    return base.replace(fresh, uuid=disk.uuid, forthcoming=True)


def check(ctx: Context, before: Instance, item: Drafted, *, ignore_ipolicy: bool) -> None:
    """Refuse a place that is not allowed or has too little room; OpPrereqError."""
    config = ctx.config
    instance = item.instance
    if not instance.primary_node:
        return
    old = config.nodes.get(before.primary_node)
    group = config.nodes[instance.primary_node].group
    known = None
    if old is not None and old.group == group:
        known = policy.shape(config, before)
    checks.shape_allowed(
        ctx,
        group,
        policy.shape(config, instance, item.disks),
        before=known,
        ignore=ignore_ipolicy,
    )
    drafts.check_room(ctx, [item], without={instance.uuid})


def record(ctx: Context, change: str, item: Drafted) -> None:
    """Record a changed reservation; disks that it has no more are forgotten."""

    def edit(draft: Draft) -> None:
        old = draft.config.instances[item.instance.uuid]
        whole = drafts.assign_ports(draft, item)
        kept = {disk.uuid for disk in whole.disks}
        for disk in whole.disks:
            if draft.config.disks.get(disk.uuid) != disk:
                draft.put(disk)
        draft.put(whole.instance)
        for uuid in old.disks:
            if uuid not in kept and uuid in draft.config.disks:
                draft.remove_disk(draft.config.disks[uuid])

    ctx.store.change(change, ctx.author, edit)
