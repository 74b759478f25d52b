"""Room for drafted reservations on nodes, and their record in the configuration."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ganeti.config.changes import Draft
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model import base
from ganeti.model.ids import InstanceUuid, NodeUuid
from ganeti.ops.operation import Context
from ganeti.ops.planning import checks, reservation_draft
from ganeti.ops.planning.reservation_draft import Drafted
from ganeti.ops.steps import node_checks
from ganeti.storage import room


def check_room(
    ctx: Context, drafts: Sequence[Drafted], *, without: Collection[InstanceUuid] = ()
) -> None:
    """Refuse when the nodes have too little left for all of these together; OpPrereqError.

    The nodes' storage must be locked until they are recorded. ``without`` are uuids of recorded
    reservations that these take the place of.
    """
    config = ctx.config
    used: dict[NodeUuid, None] = {}
    for item in drafts:
        if item.instance.primary_node:
            used[item.instance.primary_node] = None
        for disk in item.disks:
            used.update(dict.fromkeys(disk.nodes))
    for uuid in used:
        node = config.nodes[uuid]
        checks.check_usable(node, "for a reservation")
        here = [item for item in drafts if item.instance.primary_node == uuid]
        lie = [
            disk
            for item in drafts
            for disk in item.disks
            if uuid in disk.nodes or (not disk.nodes and item in here)
        ]
        # what is on record under its uuid counts as it is there, not as it will be
        end = " again" if without else ""
        claims = {
            f"{item.instance.uuid}{end}": int(config.beparams(item.instance)["maxmem"])
            for item in here
        }
        memory = sum(claims.values())
        what = here[0].instance.handle if len(drafts) == 1 and here else f"{len(drafts)} instances"
        node_checks.resources(
            ctx,
            node,
            f"the reservation of {what}",
            memory=(reservation_draft.hypervisor_of(ctx, here[0].instance), memory)
            if here
            else None,
            space=room.needs(lie),
            spindles=room.spindles(lie),
            without=without,
            claims=claims,
            reserves=True,
        )


def assign_ports(draft: Draft, item: Drafted) -> Drafted:
    """With the TCP ports that console and DRBD disks need; given out by this change."""
    instance = item.instance
    hypervisor = instance.hypervisor
    if (
        hypervisor is not None
        and instance.network_port is None
        and HYPERVISORS.get(hypervisor).traits.needs_port
    ):
        instance = base.replace(instance, network_port=draft.allocate_port())
    disks = [draft.number_disk(disk) if disk.logical_id else disk for disk in item.disks]
    return Drafted(instance, disks)


def record(ctx: Context, drafts: Sequence[Drafted]) -> None:
    """Put all into the configuration, in one change."""

    def edit(draft: Draft) -> None:
        for item in drafts:
            whole = assign_ports(draft, item)
            draft.add_instance(whole.instance, whole.disks)

    ctx.store.change("instance-reserve", ctx.author, edit)
