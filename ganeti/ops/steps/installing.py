"""Putting a guest OS on the disks of an instance, and other work for its helper guest.

An OS that has only a script ``create_untrusted`` is installed by the helper guest of the instance:
its own guest, by its own run right, from another disk (``node/helper_guests.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ganeti import errors
from ganeti.base.text import plural
from ganeti.model.disk import Disk
from ganeti.model.image import Image
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.base import OpCode
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.planning import os_images
from ganeti.ops.steps import images
from ganeti.ops.steps.running import double_run, metadata, power
from ganeti.ops.steps.storage import copy_progress
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.images import HelperTask, NodeImage
from ganeti.rpc.objects import NodeInstance

#: Seconds until a helper guest must have begun its work, and ended it.
STARTUP, SHUTDOWN = 300, 7200


def check(
    ctx: Context, instance: Instance, disks: Sequence[Disk], osparams: Mapping[str, object]
) -> None:
    """Refuse an installation that cannot be; OpPrereqError. ``osparams`` are complete."""
    found = os_images.find_for_disk(ctx.config, osparams, disks)
    if found is None and instance.os and not _is_trusted(ctx, instance):
        os_images.find_helper(ctx.config, instance.real_hypervisor, "install_image")


def _is_trusted(ctx: Context, instance: Instance) -> bool:
    """Whether the primary node installs the OS itself; an unknown one is refused elsewhere."""
    name = instance.os.partition("+")[0]
    found = ctx.rpc.call_one(ctx.config.nodes[instance.primary_node], NodeCalls.os_diagnose)
    return next((info.trusted for info in found if info.name == name), True)


def run(
    ctx: Context,
    instance: Instance,
    disks: Sequence[Disk],
    wire: NodeInstance,
    op: OpCode,
    *,
    reinstall: bool,
    debug: int,
    startup_timeout: int | None = None,
    timeout: int | None = None,
) -> None:
    """Install on active disks: an image, or the OS of the instance. Blocks until the end.

    ``wire`` is the instance as scripts see it, with all its OS parameters.

    Raises:
        OpPrereqError: as :func:`check`.
        OpExecError: the script failed, or the helper guest.
    """
    node = ctx.config.nodes[instance.primary_node]
    image = os_images.find_for_disk(ctx.config, wire.osparams, disks)
    if image is not None:
        _write_image(ctx, instance, disks[0], image)
        return
    ctx.log(f"{'Running' if reinstall else '* running'} the instance OS create scripts...")
    if _is_trusted(ctx, instance):
        ctx.rpc.call_one(node, NodeCalls.instance_os_add, wire, reinstall, debug)
        return
    found = os_images.find_helper(ctx.config, instance.real_hypervisor, "install_image")
    task = HelperTask(
        image=_describe(ctx, found),
        installs=True,
        reinstall=reinstall,
        debug=debug,
        startup_timeout=STARTUP if startup_timeout is None else startup_timeout,
        timeout=SHUTDOWN if timeout is None else timeout,
    )
    ctx.log(f" - OS {instance.os} is not trusted, so a helper guest runs its script")
    metadata.offer(ctx, instance, node)
    _run_helper(ctx, instance, wire, task, op)


def zero_free_space(
    ctx: Context, instance: Instance, image: Image | str, op: OpCode, timeout: int
) -> None:
    """Have the helper guest of a stopped instance with active disks zero what no file uses.

    Raises:
        OpExecError: it failed, or did not end within ``timeout`` seconds.
    """
    count = plural(len(instance.disks), "disk")
    ctx.log(f"* zeroing free space of {count}, for {timeout} s at most...")
    wire = annotate.instance(ctx.config, instance)
    task = HelperTask(image=_describe(ctx, image), installs=False, timeout=timeout)
    _run_helper(ctx, instance, wire, task, op)


def _describe(ctx: Context, image: Image | str) -> NodeImage | str:
    return images.describe(ctx, image) if isinstance(image, Image) else image


def _write_image(ctx: Context, instance: Instance, disk: Disk, image: Image | str) -> None:
    ctx.log(f"* writing image {image.name if isinstance(image, Image) else image} to disk 0...")
    if isinstance(image, Image):
        images.write(ctx, instance, disk, image)
        return
    node = ctx.config.nodes[instance.primary_node]
    wire = annotate.disk(ctx.config, disk, node.group)
    copy = ctx.rpc.call_one(node, NodeCalls.blockdev_image, wire, image, disk.size)
    copy_progress.follow(ctx, node, copy, image)


def _run_helper(
    ctx: Context, instance: Instance, wire: NodeInstance, task: HelperTask, op: OpCode
) -> None:
    double_run.refuse_second(ctx, instance)
    node = ctx.config.nodes[instance.primary_node]
    wire = msgspec.structs.replace(wire, run_epoch=ctx.services.run_epoch())
    try:
        copy = ctx.rpc.call_one(node, NodeCalls.helper_run, wire, task)
        copy_progress.follow(ctx, node, copy, "helper guest")
    except errors.GanetiError:
        _end_helper(ctx, node, wire, op)
        raise


def _end_helper(ctx: Context, node: Node, wire: NodeInstance, op: OpCode) -> None:
    """No error when it has ended; one that cannot be ended is only reported."""
    try:
        ctx.rpc.call_one(node, NodeCalls.instance_shutdown, wire, 0, power.reason(op))
    except errors.GanetiError as err:
        ctx.warn(f"the helper guest of {wire.name} may still run: {errors.text(err)}")
