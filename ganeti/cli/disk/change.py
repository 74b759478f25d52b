"""gnt-disk: create, modify, attach, detach and remove disks."""

from __future__ import annotations

from ganeti import errors
from ganeti.cli import jobs, output, selection, values
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many, take_one
from ganeti.cli.fields import override
from ganeti.cli.instance import devices
from ganeti.cli.programs import DISK

_NAME = take_one("disk", "disk_name")

DISK.submits("rename", "OP_DISK_RENAME", _NAME, take_one("new-name", "new_name"))


@DISK.command(
    "add",
    op="OP_DISK_CREATE",
    without=("disk",),
    also={
        "DiskKeys": ("size", "name", "mode", "spindles", "max_iops", "max_bandwidth"),
        "OP_INSTANCE_SET_PARAMS": ("ext_params",),
    },
    names={
        "ext_params": override(
            "-e",
            "--ext-params",
            metavar="<key>=<value>,...",
            help="Parameters of the template: vg, metavg, access, provider, keys of the provider",
        ),
        "nodes": override("-n", "--node", kind="nodes"),
        "size": override("-s", "--size", kind="string"),
    },
    options=o.JOB_OPTIONS,
    usage="-t <template> -s <size> {-n <node>[:<node>]|-I <name>}",
)
def add(call: Call) -> None:
    """Create a disk that belongs to no instance, and print its uuid."""
    opts = call.opts
    if opts.disk_template is None or opts.size is None:
        raise errors.make_invalid_error(
            "Template and size of the disk are missing; give them as in -t plain -s 10G"
        )
    disk = {
        **values.drop_resets(opts.ext_params),
        "size": devices.size(opts.size, "The disk"),
        "name": opts.name,
        "mode": opts.mode,
        "spindles": opts.spindles,
        "max_iops": opts.max_iops,
        "max_bandwidth": opts.max_bandwidth,
    }
    result = jobs.run(call, disk={key: given for key, given in disk.items() if given is not None})
    if result:
        print(result)


@DISK.command(
    "remove",
    take_many("disk", 1),
    op="OP_DISK_REMOVE",
    without=("disk_name",),
    options=(o.FORCE, *o.JOB_OPTIONS),
)
def remove(call: Call) -> int:
    """Destroy detached disks; their data is lost. Asks first."""
    opts = call.opts
    question = "All data on them is lost. Remove"
    if not opts.force and not selection.confirm(call.args, "disk", question):
        return 1
    work = [(name, jobs.build_own(call, disk_name=name)) for name in call.args]
    return jobs.exit_code(jobs.run_many(call, work, announce=len(work) > 1))


@DISK.command("modify", _NAME, op="OP_DISK_SET_PARAMS", options=o.JOB_OPTIONS)
def modify(call: Call) -> None:
    """Change mode, spindles or limits of a disk; others keep their values."""
    output.print_changes("disk", call.args[0], jobs.run_changes(call))


@DISK.command(
    "grow",
    _NAME,
    take_one("size", "amount"),
    op="OP_DISK_GROW",
    options=o.JOB_OPTIONS,
)
def grow(call: Call) -> None:
    """Make a disk larger by a size, or up to a size with --absolute.

    The size has a unit, as in 10G. The guest of an attached disk sees it at once where it can.
    """
    name, size = call.args
    jobs.run(call, amount=devices.size(size, f"Disk {name}"))


@DISK.command(
    "attach",
    _NAME,
    take_one("instance", "instance_name"),
    op="OP_DISK_ATTACH",
    options=o.JOB_OPTIONS,
)
def attach(call: Call) -> None:
    """Attach a detached disk to an instance; a running guest gets it at once where possible."""
    result = jobs.run(call)
    if result:
        output.print_lines([f" - {key} -> {new}" for key, new in result])


@DISK.command("detach", _NAME, op="OP_DISK_DETACH", options=o.JOB_OPTIONS)
def detach(call: Call) -> None:
    """Detach a disk from its instance and keep its data."""
    result = jobs.run(call)
    if result:
        output.print_lines([f" - {key} -> {new}" for key, new in result])
