"""gnt-instance modify: change settings, disks and NICs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ganeti import errors
from ganeti.cli import jobs, notices, output
from ganeti.cli import options as o
from ganeti.cli.command import Call, one
from ganeti.cli.instance import devices, settings
from ganeti.cli.option import ignored, switch, switch_off, value
from ganeti.cli.programs import INSTANCE
from ganeti.cli.values import resets_as_default

_OFFLINE = switch("--offline", dest="offline_inst", help="Take a stopped instance out of use")
_ONLINE = switch("--online", dest="online_inst", help="Take it into use again, stopped")
_RUNTIME_MEMORY = value(
    "-m",
    "--runtime-memory",
    dest="runtime_mem",
    kind="unit",
    help="Memory of the running guest from now on, between minmem and maxmem",
)
_NEW_PRIMARY = value(
    "--new-primary",
    dest="new_primary_node",
    metavar="<node>",
    help="Record another primary node; its disks must be there already",
)
_NO_HOTPLUG = switch_off(
    "--no-hotplug", dest="hotplug", help="Apply device changes at the next start"
)
_OLD_HOTPLUG = ignored(
    "--hotplug", "--hotplug-if-possible", help="Accepted for scripts of 3.0; this is the default"
)
_EXT_PARAMS = value(
    "-e",
    "--ext-params",
    dest="ext_params",
    kind="keyval",
    default={},
    help="Parameters for the provider of external storage the disks are converted to",
)
_DISK = o.DISK.but(
    metavar="<change>",
    help="add:size=10G, attach:name=..., remove, detach, or <index>: with add,..., attach,uuid=...,"
    " remove, detach or key=value; dev_type=... is the template of a new disk",
)
_NET = o.NET.but(
    metavar="<change>",
    help="add:link=br0, remove, or <index>: with add,..., remove or key=value",
)


@INSTANCE.command(
    "modify",
    one("instance"),
    options=(
        o.FORCE,
        o.BACKEND,
        o.HV_PARAMS,
        _DISK,
        _NET,
        o.OS,
        o.FORCE_VARIANT,
        o.OS_PARAMS,
        o.OS_PARAMS_PRIVATE,
        o.DISK_TEMPLATE.but(help="Convert the disks to this template"),
        o.NODE.but(help="Secondary node for disks that get one"),
        o.IALLOCATOR,
        o.NO_WAIT_FOR_SYNC,
        _EXT_PARAMS,
        o.FILE_DRIVER,
        o.FILE_STORAGE_DIR,
        _OFFLINE,
        _ONLINE,
        _RUNTIME_MEMORY,
        _NEW_PRIMARY,
        _NO_HOTPLUG,
        _OLD_HOTPLUG,
        o.COMMUNICATION,
        o.NO_CONFLICTS_CHECK,
        o.IGNORE_IPOLICY,
        *o.JOB_OPTIONS,
    ),
)
def modify(call: Call) -> None:
    """Change settings, disks or NICs of an instance.

    A parameter with a minus sign in front, as in -B -maxmem, goes back to its default.
    """
    opts = call.opts
    changes = _changes(opts)
    if not any(value not in (None, {}, []) for value in changes.values()):
        raise errors.OpPrereqError(
            "Nothing to change: give at least one setting, disk or NIC",
            errors.ErrorCode.INVAL,
        )
    result = jobs.run_op(
        call,
        "OP_INSTANCE_SET_PARAMS",
        instance_name=call.args[0],
        force=opts.force,
        force_variant=opts.force_variant,
        ignore_ipolicy=opts.ignore_ipolicy,
        wait_for_sync=opts.wait_for_sync,
        conflicts_check=opts.conflicts_check,
        hotplug=opts.hotplug,
        remote_node=opts.node,
        iallocator=opts.iallocator,
        file_driver=opts.file_driver,
        file_storage_dir=opts.file_storage_dir,
        **changes,
    )
    if not result:
        return
    print(f"Modified instance {call.args[0]}")
    output.print_lines([f" - {name:<5} -> {new}" for name, new in result])
    if changes["hvparams"] or changes["beparams"]:
        notices.say(
            "Most parameters take effect when the instance is started next time by Ganeti;"
            " a restart from inside the guest is not enough"
        )


def _changes(opts: SimpleNamespace) -> dict[str, Any]:
    """What is to be different afterwards; empty where nothing was given."""
    settings.only_one(online=opts.online_inst, offline=opts.offline_inst)
    offline = True if opts.offline_inst else (False if opts.online_inst else None)
    return {
        "beparams": settings.backend(opts.beparams, keep_resets=True),
        "hvparams": resets_as_default(opts.hvparams),
        "disks": devices.changes(opts.disks, "disk"),
        "nics": devices.changes(opts.nics, "NIC"),
        "os_name": opts.os,
        "osparams": resets_as_default(opts.osparams),
        "osparams_private": resets_as_default(opts.osparams_private) or None,
        "disk_template": opts.disk_template,
        "ext_params": dict(opts.ext_params),
        "offline": offline,
        "runtime_mem": opts.runtime_mem,
        "pnode": opts.new_primary_node,
        "instance_communication": opts.instance_communication,
    }
