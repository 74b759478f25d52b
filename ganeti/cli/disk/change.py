"""gnt-disk: make, change, attach, detach and remove disks."""

from __future__ import annotations

from ganeti import errors
from ganeti.cli import jobs, output, params, selection, values
from ganeti.cli import options as o
from ganeti.cli.command import Call, many, one
from ganeti.cli.instance import devices
from ganeti.cli.option import switch, switch_off, value
from ganeti.cli.programs import DISK

_INVAL = errors.ErrorCode.INVAL

_SIZE = value("-s", "--size", dest="size", metavar="<size>", help="Size, as in 10G")
_NAME = value("--name", dest="name", metavar="<name>", help="Name that no other disk has")
_MODE = value("--mode", dest="mode", choices=("ro", "rw"), help="Whether a guest may write")
_SPINDLES = value(
    "--spindles",
    dest="spindles",
    kind="int",
    metavar="<number>",
    help="Number of physical disks that it counts as",
)
_KEYS = value(
    "-e",
    "--ext-params",
    dest="ext_params",
    kind="keyval",
    default={},
    metavar="<key>=<value>,...",
    help="What the template knows: vg, metavg, access, provider and keys of the provider",
)
_TAGS = value("--tags", dest="tags", metavar="<tag>,...", help="Tags, with commas between")
_INDEX = value(
    "--index",
    dest="index",
    kind="int",
    metavar="<index>",
    help="Place among the disks of the instance; the end without it",
)
_NO_HOTPLUG = switch_off(
    "--no-hotplug", dest="hotplug", help="Leave the running guest alone until its next start"
)
_ABSOLUTE = switch(
    "--absolute", dest="absolute", help="The size is the new one, not what is to be added"
)
_IGNORE_FAILURES = switch(
    "--ignore-failures",
    dest="ignore_failures",
    help="Forget the disk although what is on a node cannot be removed",
)


@DISK.command(
    "add",
    options=(
        o.DISK_TEMPLATE,
        _SIZE,
        o.PLACEMENT.but(help="Nodes that hold the disk"),
        o.IALLOCATOR,
        _NAME,
        _MODE,
        _SPINDLES,
        _KEYS,
        o.FILE_DRIVER,
        o.FILE_STORAGE_DIR,
        _TAGS,
        *o.JOB_OPTIONS,
    ),
    usage="-t <template> -s <size> {-n <node>[:<node>]|-I <name>}",
)
def add(call: Call) -> None:
    """Create a disk that belongs to no instance, and print its uuid."""
    opts = call.opts
    if opts.disk_template is None or opts.size is None:
        raise errors.OpPrereqError(
            "Say how the disk is stored and how large it is, as in -t plain -s 10G", _INVAL
        )
    disk = {
        **values.no_resets(opts.ext_params),
        "size": devices.size(opts.size, "The disk"),
        "name": opts.name,
        "mode": opts.mode,
        "spindles": opts.spindles,
    }
    result = jobs.run_op(
        call,
        "OP_DISK_CREATE",
        disk_template=opts.disk_template,
        disk={key: given for key, given in disk.items() if given is not None},
        nodes=[node for node in params.split_nodes(opts.node) if node],
        iallocator=opts.iallocator,
        file_driver=opts.file_driver,
        file_storage_dir=opts.file_storage_dir,
        tags=[tag for tag in (opts.tags or "").split(",") if tag],
    )
    if result:
        print(result)


@DISK.command("remove", many("disk", 1), options=(o.FORCE, _IGNORE_FAILURES, *o.JOB_OPTIONS))
def remove(call: Call) -> int:
    """Destroy detached disks; their data is lost. Asks first."""
    opts = call.opts
    question = "All data on them is lost. Remove"
    if not opts.force and not selection.confirm(call.args, "disk", question):
        return 1
    work = [
        (
            name,
            jobs.build(
                call, "OP_DISK_REMOVE", disk_name=name, ignore_failures=opts.ignore_failures
            ),
        )
        for name in call.args
    ]
    return jobs.exit_code(jobs.run_many(call, work, announce=len(work) > 1))


@DISK.command("modify", one("disk"), options=(_MODE, _SPINDLES, *o.JOB_OPTIONS))
def modify(call: Call) -> None:
    """Change mode or spindles of a disk; what is not named stays."""
    opts = call.opts
    if opts.mode is None and opts.spindles is None:
        raise errors.OpPrereqError("Nothing to change: give --mode or --spindles", _INVAL)
    result = jobs.run_op(
        call,
        "OP_DISK_SET_PARAMS",
        disk_name=call.args[0],
        mode=opts.mode,
        spindles=opts.spindles,
    )
    if result:
        print(f"Modified disk {call.args[0]}")
        output.print_lines([f" - {key} -> {new}" for key, new in result])


@DISK.command("rename", one("disk"), one("new-name"), options=o.JOB_OPTIONS)
def rename(call: Call) -> None:
    """Give a disk another name; none removes its name."""
    old, new = call.args
    jobs.run_op(call, "OP_DISK_RENAME", disk_name=old, new_name=new)


@DISK.command(
    "grow",
    one("disk"),
    one("size"),
    options=(_ABSOLUTE, o.NO_WAIT_FOR_SYNC, o.IGNORE_IPOLICY, *o.JOB_OPTIONS),
)
def grow(call: Call) -> None:
    """Make a disk larger by a size, or up to a size with --absolute.

    The size has a unit, as in 10G. The guest of an attached disk sees it at once where it can.
    """
    name, size = call.args
    jobs.run_op(
        call,
        "OP_DISK_GROW",
        disk_name=name,
        amount=devices.size(size, f"Disk {name}"),
        absolute=call.opts.absolute,
        wait_for_sync=call.opts.wait_for_sync,
        ignore_ipolicy=call.opts.ignore_ipolicy,
    )


@DISK.command(
    "attach",
    one("disk"),
    one("instance"),
    options=(_INDEX, _NO_HOTPLUG, o.IGNORE_IPOLICY, *o.JOB_OPTIONS),
)
def attach(call: Call) -> None:
    """Give a detached disk to an instance, whose guest gets it at once where it can."""
    disk, instance = call.args
    result = jobs.run_op(
        call,
        "OP_DISK_ATTACH",
        disk_name=disk,
        instance_name=instance,
        index=call.opts.index,
        hotplug=call.opts.hotplug,
        ignore_ipolicy=call.opts.ignore_ipolicy,
    )
    if result:
        output.print_lines([f" - {key} -> {new}" for key, new in result])


@DISK.command("detach", one("disk"), options=(_NO_HOTPLUG, o.IGNORE_IPOLICY, *o.JOB_OPTIONS))
def detach(call: Call) -> None:
    """Take a disk from its instance; its data stays where it is."""
    result = jobs.run_op(
        call,
        "OP_DISK_DETACH",
        disk_name=call.args[0],
        hotplug=call.opts.hotplug,
        ignore_ipolicy=call.opts.ignore_ipolicy,
    )
    if result:
        output.print_lines([f" - {key} -> {new}" for key, new in result])
