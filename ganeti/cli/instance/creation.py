"""What all commands that create an instance have in common: options, and the opcode's fields."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ganeti.cli import options as o
from ganeti.cli import params
from ganeti.cli.instance import devices, settings
from ganeti.cli.option import ignored, switch, value
from ganeti.cli.values import KeyVals, no_resets

_HYPERVISOR = value(
    "-H",
    "--hypervisor-parameters",
    dest="hypervisor",
    kind="identkeyval",
    metavar="<hypervisor>:<key>=<value>,...",
    help="Hypervisor with its parameters, as in kvm:acpi=true",
)
_SIZE = value(
    "-s", "--os-size", dest="sd_size", kind="unit", help="Size of the only disk; instead of --disk"
)
_NO_NICS = switch("--no-nics", dest="no_nics", help="Create without a NIC")
_OPPORTUNISTIC = switch(
    "--opportunistic-locking",
    dest="opportunistic_locking",
    help="Let an allocator choose only among nodes that are not busy",
)
_TAGS = value(
    "--tags", dest="tags", metavar="<tag>,...", help="Tags of the instance, with commas between"
)
_HELPER_STARTUP = value(
    "--helper-startup-timeout",
    dest="helper_startup_timeout",
    kind="int",
    metavar="<seconds>",
    help="Time the guest that helps to install gets to start",
)
_HELPER_SHUTDOWN = value(
    "--helper-shutdown-timeout",
    dest="helper_shutdown_timeout",
    kind="int",
    metavar="<seconds>",
    help="Time the guest that helps to install gets to work and stop",
)
_OLD = "Ignored (now the default)"

#: Options that every way to create an instance has.
CREATION_OPTIONS = (
    o.DISK_TEMPLATE,
    o.DISK,
    _SIZE,
    o.NET,
    _NO_NICS,
    o.BACKEND,
    _HYPERVISOR,
    o.PLACEMENT,
    o.NODE_GROUP.but(help="Node group to choose nodes from"),
    o.IALLOCATOR,
    _OPPORTUNISTIC,
    o.FILE_STORAGE_DIR,
    o.FILE_DRIVER,
    o.IP_CHECK,
    ignored("--no-ip-check", help=_OLD),
    o.NAME_CHECK,
    ignored("--no-name-check", help=_OLD),
    o.NO_CONFLICTS_CHECK,
    o.NO_WAIT_FOR_SYNC,
    o.OS_PARAMS,
    o.OS_PARAMS_PRIVATE,
    o.OS_PARAMS_SECRET,
    _TAGS,
    o.IGNORE_IPOLICY,
    _HELPER_STARTUP,
    _HELPER_SHUTDOWN,
)


def fields(
    name: str, opts: SimpleNamespace, *, may_be_open: bool = False, again: bool = False
) -> dict[str, Any]:
    """Fields of OP_INSTANCE_CREATE that these options fill.

    With ``may_be_open`` disks may be missing, as a reservation's may; with ``again`` all of this
    may have been said when the instance was reserved, so nothing has a default.

    Raises:
        OpPrereqError, ParameterError: options that make no sense alone or together.
    """
    no_disks = (may_be_open or again) and not opts.disks and opts.sd_size is None
    primary, secondary = params.split_nodes(opts.node)
    hypervisor, hvparams = settings.hypervisor(opts.hypervisor)
    return {
        "instance_name": name,
        "disk_template": opts.disk_template,
        "disks": [] if no_disks else devices.new_disks(opts),
        "nics": [] if again and not opts.nics else devices.new_nics(opts),
        "beparams": settings.backend(opts.beparams, keep_resets=False),
        "hypervisor": hypervisor,
        "hvparams": hvparams,
        "pnode": primary,
        "snode": secondary,
        "group_name": opts.nodegroup,
        "iallocator": opts.iallocator,
        "opportunistic_locking": opts.opportunistic_locking,
        "file_storage_dir": opts.file_storage_dir,
        "file_driver": opts.file_driver,
        "ip_check": opts.ip_check,
        "name_check": opts.name_check,
        "conflicts_check": opts.conflicts_check,
        "wait_for_sync": opts.wait_for_sync,
        "osparams": no_resets(opts.osparams),
        "osparams_private": hidden(opts.osparams_private),
        "osparams_secret": hidden(opts.osparams_secret),
        "tags": [tag for tag in (opts.tags or "").split(",") if tag],
        "ignore_ipolicy": opts.ignore_ipolicy,
        "helper_startup_timeout": opts.helper_startup_timeout,
        "helper_shutdown_timeout": opts.helper_shutdown_timeout,
    }


def hidden(given: KeyVals) -> dict[str, Any] | None:
    """Private or secret OS parameters; None when there are none."""
    return no_resets(given) or None
