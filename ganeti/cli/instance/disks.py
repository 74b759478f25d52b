"""gnt-instance: disks of instances."""

from __future__ import annotations

from ganeti import errors
from ganeti.cli import jobs, output, values
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_one
from ganeti.cli.fields import override
from ganeti.cli.instance import devices
from ganeti.cli.programs import INSTANCE

_NAME = take_one("instance", "instance_name")
_SIDES = {
    "replace_auto": ("-a", "--auto", "Replace faulty disks, on whichever node they are"),
    "replace_on_primary": ("-p", "--on-primary", "Replace the disks on the primary node"),
    "replace_on_secondary": ("-s", "--on-secondary", "Replace the disks on the secondary node"),
}


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

    With -f it is not checked whether the instance runs.
    """
    jobs.run(call)


@INSTANCE.command(
    "grow-disk",
    _NAME,
    take_one("disk", "disk"),
    take_one("size", "amount"),
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
        raise errors.make_invalid_error(f"'{disk}' is not the index of a disk, as in 0")
    jobs.run(call, disk=numbers[0], amount=devices.size(size, f"Disk {disk}"))


@INSTANCE.command(
    "recreate-disks",
    _NAME,
    op="OP_INSTANCE_RECREATE_DISKS",
    names={
        "disks": override(
            "--disk",
            kind="identkeyval",
            metavar="<index>[:<key>=<value>,...]",
            help="Only this disk, with another size or number of spindles if given",
            take=devices.recreation,
        ),
        "nodes": override("-n", "--node", kind="nodes"),
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
    names={
        "disks": override("--disks", metavar="<index>,...", take=values.indices, kind="string"),
        "mode": override(each=_SIDES),
    },
    options=o.JOB_OPTIONS,
    usage="{-p|-s|-a|-n <node>|-I <name>} <instance>",
)
def replace_disks(call: Call) -> None:
    """Replace mirrored disks: those of one side, broken ones, or all on a new secondary node."""
    opts = call.opts
    sides = list(dict.fromkeys(opts.mode))
    places = (opts.remote_node, opts.iallocator)
    if len(sides) + sum(place is not None for place in places) != 1:
        raise errors.make_invalid_error(
            "Say what to replace with exactly one of -p, -s, -a, -n and -I"
        )
    jobs.run(call, mode=sides[0] if sides else "replace_new_secondary")
