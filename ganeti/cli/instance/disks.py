"""gnt-instance: disks of instances."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.cli import jobs, output, values
from ganeti.cli import options as o
from ganeti.cli.command import Call, one
from ganeti.cli.fields import named
from ganeti.cli.instance import devices
from ganeti.cli.option import switch
from ganeti.cli.programs import INSTANCE

_INVAL = errors.ErrorCode.INVAL

_NAME = one("instance", "instance_name")
_AUTO = switch("-a", "--auto", dest="auto", help="Replace what is broken, on whichever side")
_ON_PRIMARY = switch("-p", "--on-primary", dest="on_primary", help="Replace the primary's disks")
_ON_SECONDARY = switch(
    "-s", "--on-secondary", dest="on_secondary", help="Replace the secondary's disks"
)


@INSTANCE.command(
    "activate-disks",
    _NAME,
    op="OP_INSTANCE_ACTIVATE_DISKS",
    options=(*o.SUBMIT_OPTIONS, o.PRIORITY),
)
def activate_disks(call: Call) -> None:
    """Activate the disks of a stopped instance on its node, and show their devices.

    Prints a line <node>:<disk>:<device> for each.
    """
    rows = jobs.run(call)
    output.print_lines([f"{node}:{name}:{device}" for node, name, device in rows])


@INSTANCE.command(
    "deactivate-disks", _NAME, op="OP_INSTANCE_DEACTIVATE_DISKS", options=o.JOB_OPTIONS
)
def deactivate_disks(call: Call) -> None:
    """Deactivate the disks of a stopped instance.

    With -f this is done without looking whether the instance runs.
    """
    jobs.run(call)


@INSTANCE.command(
    "grow-disk",
    _NAME,
    one("disk", "disk"),
    one("size", "amount"),
    op="OP_INSTANCE_GROW_DISK",
    options=o.JOB_OPTIONS,
)
def grow_disk(call: Call) -> None:
    """Make a disk larger by a size, or up to a size with --absolute.

    The disk is an index as in gnt-instance info; the size has a unit, as in 10G.
    """
    _name, disk, size = call.args
    numbers = values.indices(disk)
    if len(numbers) != 1:
        raise errors.OpPrereqError(f"'{disk}' is not the index of a disk, as in 0", _INVAL)
    jobs.run(call, disk=numbers[0], amount=devices.size(size, f"Disk {disk}"))


@INSTANCE.command(
    "recreate-disks",
    _NAME,
    op="OP_INSTANCE_RECREATE_DISKS",
    names={
        "disks": named(
            "--disk",
            kind="identkeyval",
            metavar="<index>[:<key>=<value>,...]",
            help="Only this disk, with another size or number of spindles if given",
            take=devices.recreation,
        ),
        "nodes": named("-n", "--node", kind="nodes"),
    },
    options=o.JOB_OPTIONS,
)
def recreate_disks(call: Call) -> None:
    """Recreate lost disks of a stopped instance, empty."""
    jobs.run(call)


@INSTANCE.command(
    "replace-disks",
    _NAME,
    op="OP_INSTANCE_REPLACE_DISKS",
    without=("mode",),
    names={"disks": named("--disks", metavar="<index>,...", take=values.indices, kind="string")},
    options=(_ON_PRIMARY, _ON_SECONDARY, _AUTO, *o.JOB_OPTIONS),
    usage="{-p|-s|-a|-n <node>|-I <name>} <instance>",
)
def replace_disks(call: Call) -> None:
    """Replace mirrored disks: those of one side, broken ones, or all by a new secondary node."""
    jobs.run(call, mode=_replacement(call.opts))


def _replacement(opts: Any) -> str:
    """Mode of the opcode; exactly one option must say it."""
    given = {
        "-p": (opts.on_primary, "replace_on_primary"),
        "-s": (opts.on_secondary, "replace_on_secondary"),
        "-a": (opts.auto, "replace_auto"),
        "-n": (opts.remote_node is not None, "replace_new_secondary"),
        "-I": (opts.iallocator is not None, "replace_new_secondary"),
    }
    modes = [mode for is_given, mode in given.values() if is_given]
    if len(modes) != 1:
        raise errors.OpPrereqError(
            "Say what to replace with exactly one of -p, -s, -a, -n and -I", _INVAL
        )
    return modes[0]
