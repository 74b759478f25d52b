"""Changing devices of a running instance."""

from __future__ import annotations

from ganeti import errors
from ganeti.model.disk import Disk
from ganeti.model.enums import HotplugAction, HotplugTarget
from ganeti.model.instance import Instance
from ganeti.model.nic import Nic
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.planning import disk_settings
from ganeti.ops.steps.running import power
from ganeti.rpc import wire
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import NodeDisk, NodeNic


def obstacle(ctx: Context, instance: Instance) -> str | None:
    """Why devices of a running instance cannot be changed now; None when they can be."""
    wire = annotate.instance(ctx.config, instance)
    try:
        ctx.rpc.call_one(power.primary(ctx, instance), NodeCalls.hotplug_supported, wire)
    except errors.RpcError:
        raise
    except errors.GanetiError as err:
        return errors.text(err)
    return None


def change_disk(
    ctx: Context, instance: Instance, action: HotplugAction, disk: Disk, index: int
) -> None:
    """Add, remove or limit a disk; it is assembled. Raises HotplugError."""
    node = power.primary(ctx, instance)
    wire = annotate.disk(ctx.config, disk, node.group)
    _change(ctx, instance, action, HotplugTarget.DISK, wire, index)


def change_nic(
    ctx: Context, instance: Instance, action: HotplugAction, nic: Nic, index: int
) -> None:
    """Add, remove or change a NIC. Raises HotplugError."""
    node = power.primary(ctx, instance)
    wire = annotate.nic(ctx.config, nic, node.group)
    _change(ctx, instance, action, HotplugTarget.NIC, wire, index)


def _change(
    ctx: Context,
    instance: Instance,
    action: HotplugAction,
    kind: HotplugTarget,
    device: NodeDisk | NodeNic,
    index: int,
) -> None:
    ctx.rpc.call_one(
        power.primary(ctx, instance),
        NodeCalls.hotplug_device,
        annotate.instance(ctx.config, instance),
        action,
        kind,
        wire.encode(device),
        None,
        index,
    )


def report_limits(ctx: Context, instance: Instance, before: Disk, index: int) -> None:
    """Keep a running instance to new limits of a disk; a failure is only reported.

    ``before`` is the disk as it was; the configuration has what it is now.
    """
    disk = ctx.config.disks[before.uuid]
    if not disk_settings.list_changed(before, disk, *disk_settings.LIMITS):
        return
    try:
        if power.query_running(ctx, instance) is not None:
            change_disk(ctx, instance, HotplugAction.MODIFY, disk, index)
    except errors.GanetiError as err:
        ctx.warn(
            f"the running instance keeps the old limits of disk {index} until its next start:"
            f" {errors.text(err)}"
        )


def report_size(ctx: Context, instance: Instance, index: int) -> None:
    """Tell a running instance that a disk is larger; a failure is only reported."""
    if power.query_running(ctx, instance) is None:
        return
    disk = ctx.config.disks_of(instance)[index]
    node = power.primary(ctx, instance)
    try:
        ctx.rpc.call_one(
            node,
            NodeCalls.resize_disk,
            annotate.instance(ctx.config, instance),
            annotate.disk(ctx.config, disk, node.group),
            disk.size,
        )
    except errors.GanetiError as err:
        ctx.warn(
            f"the running instance does not see the new size of disk {index} before its next"
            f" start: {errors.text(err)}"
        )
