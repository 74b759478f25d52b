"""What all commands that create an instance have in common: options, and the opcode's fields."""

from __future__ import annotations

from functools import partial
from typing import Any

from ganeti.cli import options as o
from ganeti.cli import params
from ganeti.cli.command import Call
from ganeti.cli.fields import named
from ganeti.cli.instance import devices, settings
from ganeti.cli.option import ignored, switch, value

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
_OLD = "Ignored (now the default)"

OP = "OP_INSTANCE_CREATE"
#: Fields for content that comes from elsewhere, and those that options fill in another form.
WITHOUT = (
    "compress",
    "hvparams",
    "hypervisor",
    "identify_defaults",
    "instance_name",
    "mode",
    "pnode",
    "snode",
    "source_handshake",
    "source_instance_name",
    "source_shutdown_timeout",
    "source_x509_ca",
    "src_node",
    "src_path",
)
NAMES = {
    "beparams": named(
        "-B", "--backend-parameters", take=partial(settings.backend, keep_resets=False)
    ),
    "group_name": named("-g", "--node-group"),
    "no_install": named(kind="switch"),
}
#: Options that every way to create an instance has beside the fields.
EXTRAS = (
    _SIZE,
    _NO_NICS,
    _HYPERVISOR,
    o.PLACEMENT,
    ignored("--no-ip-check", help=_OLD),
    ignored("--no-name-check", help=_OLD),
)


def parameters(
    call: Call, name: str, *, may_be_open: bool = False, again: bool = False
) -> dict[str, Any]:
    """Parameters of OP_INSTANCE_CREATE that the options of a command give.

    With ``may_be_open`` disks may be missing, as a reservation's may; with ``again`` all of this
    may have been said when the instance was reserved, so nothing has a default.

    Raises:
        OpPrereqError, ParameterError: options that make no sense alone or together.
    """
    opts = call.opts
    no_disks = (may_be_open or again) and not opts.disks and opts.sd_size is None
    primary, secondary = params.split_nodes(opts.node)
    hypervisor, hvparams = settings.hypervisor(opts.hypervisor)
    return call.spec.parameters(call) | {
        "mode": "create",
        "instance_name": name,
        "disks": [] if no_disks else devices.new_disks(opts),
        "nics": [] if again and not opts.nics else devices.new_nics(opts),
        "hypervisor": hypervisor,
        "hvparams": hvparams,
        "pnode": primary,
        "snode": secondary,
    }
