"""gnt-instance: disks of instances."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.cli import jobs, output, params, values
from ganeti.cli import options as o
from ganeti.cli.command import Call, one
from ganeti.cli.instance import devices
from ganeti.cli.option import switch, value
from ganeti.cli.programs import INSTANCE

_INVAL = errors.ErrorCode.INVAL

_IGNORE_SIZE = switch(
    "--ignore-size",
    dest="ignore_size",
    help="Go on although a disk has another size than recorded",
)
_WAIT_FOR_SYNC = switch(
    "--wait-for-sync", dest="wait_for_sync", help="Wait until the disks are in sync"
)
_ABSOLUTE = switch(
    "--absolute", dest="absolute", help="The size is the new one, not what is to be added"
)
_AUTO = switch("-a", "--auto", dest="auto", help="Replace what is broken, on whichever side")
_ON_PRIMARY = switch("-p", "--on-primary", dest="on_primary", help="Replace the primary's disks")
_ON_SECONDARY = switch(
    "-s", "--on-secondary", dest="on_secondary", help="Replace the secondary's disks"
)
_DISKS = value("--disks", dest="disks", metavar="<index>,...", help="Only these disks, as in 0,2")


@INSTANCE.command(
    "activate-disks",
    one("instance"),
    options=(_IGNORE_SIZE, _WAIT_FOR_SYNC, *o.SUBMIT_OPTIONS, o.PRIORITY),
)
def activate_disks(call: Call) -> None:
    """Make the disks of a stopped instance usable on its node, and show where they are.

    Prints a line <node>:<disk>:<device> for each.
    """
    rows = jobs.run_op(
        call,
        "OP_INSTANCE_ACTIVATE_DISKS",
        instance_name=call.args[0],
        ignore_size=call.opts.ignore_size,
        wait_for_sync=call.opts.wait_for_sync,
    )
    output.print_lines([f"{node}:{name}:{device}" for node, name, device in rows])


@INSTANCE.command("deactivate-disks", one("instance"), options=(o.FORCE, *o.JOB_OPTIONS))
def deactivate_disks(call: Call) -> None:
    """Take the disks of a stopped instance out of use.

    With -f this is done without looking whether the instance runs.
    """
    jobs.run_op(
        call,
        "OP_INSTANCE_DEACTIVATE_DISKS",
        instance_name=call.args[0],
        force=call.opts.force,
    )


@INSTANCE.command(
    "grow-disk",
    one("instance"),
    one("disk"),
    one("size"),
    options=(_ABSOLUTE, o.NO_WAIT_FOR_SYNC, o.IGNORE_IPOLICY, *o.JOB_OPTIONS),
)
def grow_disk(call: Call) -> None:
    """Make a disk larger by a size, or up to a size with --absolute.

    The disk is an index as in gnt-instance info; the size has a unit, as in 10G.
    """
    name, disk, size = call.args
    numbers = values.indices(disk)
    if len(numbers) != 1:
        raise errors.OpPrereqError(f"'{disk}' is not the index of a disk, as in 0", _INVAL)
    jobs.run_op(
        call,
        "OP_INSTANCE_GROW_DISK",
        instance_name=name,
        disk=numbers[0],
        amount=devices.size(size, f"Disk {disk}"),
        absolute=call.opts.absolute,
        wait_for_sync=call.opts.wait_for_sync,
        ignore_ipolicy=call.opts.ignore_ipolicy,
    )


@INSTANCE.command(
    "recreate-disks",
    one("instance"),
    options=(
        o.DISK.but(
            metavar="<index>[:<key>=<value>,...]",
            help="Only this disk, with another size or number of spindles if given",
        ),
        o.PLACEMENT.but(help="Nodes to put the disks on; where they were if none is given"),
        o.IALLOCATOR,
        *o.JOB_OPTIONS,
    ),
)
def recreate_disks(call: Call) -> None:
    """Recreate lost disks of a stopped instance, empty."""
    opts = call.opts
    nodes = [node for node in params.split_nodes(opts.node) if node]
    jobs.run_op(
        call,
        "OP_INSTANCE_RECREATE_DISKS",
        instance_name=call.args[0],
        disks=devices.recreation(opts.disks),
        nodes=nodes,
        iallocator=opts.iallocator,
    )


@INSTANCE.command(
    "replace-disks",
    one("instance"),
    options=(
        _ON_PRIMARY,
        _ON_SECONDARY,
        _AUTO,
        o.NEW_SECONDARY,
        o.IALLOCATOR,
        _DISKS,
        o.EARLY_RELEASE,
        o.IGNORE_IPOLICY,
        *o.JOB_OPTIONS,
    ),
    usage="{-p|-s|-a|-n <node>|-I <name>} <instance>",
)
def replace_disks(call: Call) -> None:
    """Replace mirrored disks: those of one side, broken ones, or all by a new secondary node."""
    opts = call.opts
    jobs.run_op(
        call,
        "OP_INSTANCE_REPLACE_DISKS",
        instance_name=call.args[0],
        mode=_replacement(opts),
        disks=values.indices(opts.disks or ""),
        remote_node=opts.dst_node,
        iallocator=opts.iallocator,
        early_release=opts.early_release,
        ignore_ipolicy=opts.ignore_ipolicy,
    )


def _replacement(opts: Any) -> str:
    """Mode of the opcode; exactly one option must say it."""
    given = {
        "-p": (opts.on_primary, "replace_on_primary"),
        "-s": (opts.on_secondary, "replace_on_secondary"),
        "-a": (opts.auto, "replace_auto"),
        "-n": (opts.dst_node is not None, "replace_new_secondary"),
        "-I": (opts.iallocator is not None, "replace_new_secondary"),
    }
    modes = [mode for is_given, mode in given.values() if is_given]
    if len(modes) != 1:
        raise errors.OpPrereqError(
            "Say what to replace with exactly one of -p, -s, -a, -n and -I", _INVAL
        )
    return modes[0]
