"""Options and fields of the opcode for all commands that create an instance."""

from __future__ import annotations

from functools import partial

from ganeti.base.json_types import JsonObject
from ganeti.cli import params, selection
from ganeti.cli.command import Call
from ganeti.cli.fields import override
from ganeti.cli.instance import cloud_init, devices, settings
from ganeti.cli.option import legacy_option, switch

_NO_NICS = switch("--no-nics", dest="no_nics", help="Create without a NIC")
_OLD_CHECKS = legacy_option("--no-ip-check", "--no-name-check", help="Ignored (now the default)")

OP = "OP_INSTANCE_CREATE"
#: Fields for content that comes from elsewhere, and those that options fill in another form.
WITHOUT = (
    "backup",
    "compress",
    "disk_sources",
    "hvparams",
    "identify_defaults",
    "instance_name",
    "mode",
    "repository",
    "snode",
    "source_handshake",
    "source_instance_name",
    "source_shutdown_timeout",
    "source_x509_ca",
    "src_node",
    "src_path",
)
NAMES = {
    "beparams": override(
        "-B", "--backend-parameters", take=partial(settings.backend, keep_resets=False)
    ),
    "group_name": override("-g", "--node-group"),
    "hypervisor": override(
        "-H",
        "--hypervisor-parameters",
        kind="identkeyval",
        append=False,
        metavar="<hypervisor>:<key>=<value>,...",
        help="Hypervisor with its parameters, as in kvm:acpi=true",
        take=settings.hypervisor,
    ),
    "no_install": override(kind="switch"),
    "pnode": override(
        "-n",
        "--node",
        metavar="<primary>[:<secondary>]",
        help="Nodes to put the instance on",
        take=params.split_nodes,
    ),
    **cloud_init.NAMES,
    "size": override("-s", "--os-size", help="Size of the only disk; instead of --disk"),
}
#: The size of the only disk, which has only these keys.
SIZE: dict[str, tuple[str, ...]] = {"DiskKeys": ("size",)}
#: Options that every way to create an instance has beside the fields.
EXTRAS = (_NO_NICS, _OLD_CHECKS)


def parameters(
    call: Call, name: str, *, may_be_open: bool = False, again: bool = False
) -> JsonObject:
    """Parameters of OP_INSTANCE_CREATE that the options of a command give.

    With ``may_be_open`` disks may be missing, as a reservation's may; with ``again`` all of this
    may have been said when the instance was reserved, so nothing has a default.

    Raises:
        OpPrereqError, ParameterError: options that make no sense alone or together.
    """
    opts = call.opts
    no_disks = (may_be_open or again) and not opts.disks and opts.size is None
    given = call.spec.parameters(call)
    primary, secondary = given["pnode"] or (None, None)
    hypervisor, hvparams = given["hypervisor"] or (None, {})
    return given | {
        "mode": "create",
        "instance_name": name,
        "disks": [] if no_disks else _disks(call),
        "nics": [] if again and not opts.nics else devices.new_nics(opts),
        "hypervisor": hypervisor,
        "hvparams": hvparams,
        "pnode": primary,
        "snode": secondary,
    }


def _disks(call: Call) -> list[JsonObject]:
    """Disks as the options say; for an image without any, one of its size."""
    opts = call.opts
    image = getattr(opts, "image", None)  # a reservation has none
    if not image or opts.disks or opts.size is not None or opts.disk_template == "diskless":
        return devices.new_disks(opts)
    selection.refuse_unknown(
        call.client, "image", [image], call.client.query_images([], ("name", "uuid"))
    )
    return [{"size": call.client.query_images([image], ("disk_size",))[0][0]}]
