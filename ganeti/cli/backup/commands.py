"""gnt-backup: export instances to nodes, and create instances from exports."""

from __future__ import annotations

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.cli import jobs, listing
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many, take_one
from ganeti.cli.fields import override
from ganeti.cli.instance import creation, settings
from ganeti.cli.programs import BACKUP
from ganeti.filters import arguments

_LIST_FIELDS = ("node", "export")


@BACKUP.command(
    "export",
    take_one("instance", "instance_name"),
    op="OP_BACKUP_EXPORT",
    without=("mode", "x509_key_name", "destination_x509_ca"),
    names={
        "compress": override("--transport-compression", default="none"),
        "shutdown": override("--noshutdown"),
        "target_node": override(
            "-n", "--node", kind="string", metavar="<node>", help="Node that keeps the export"
        ),
    },
    options=(o.FORCE, *o.JOB_OPTIONS),
    usage="-n <node> <instance>",
)
def export(call: Call) -> None:
    """Copy the disks and settings of an instance to a node.

    The guest is stopped while its disks are frozen, and then runs again. Disks that cannot be
    frozen, such as files, are read while it is stopped. An older export of the instance on that
    node is replaced when the new one is complete. With --remove-instance it asks first.
    """
    name, opts = call.args[0], call.opts
    if not opts.target_node:
        raise errors.make_invalid_error(f"Instance {name}: choose the node with --node")
    if opts.remove_instance:
        settings.ask_first(
            call, name, f"Export instance {name} to {opts.target_node} and remove it here?"
        )
    jobs.run(call, mode="local")


@BACKUP.command(
    "import",
    take_one("instance"),
    op=creation.OP,
    without=tuple(
        field
        for field in (*creation.WITHOUT, "commit", "forthcoming", "no_install", "force_variant")
        if field not in ("compress", "identify_defaults", "src_node", "src_path")
    ),
    names={
        **creation.NAMES,
        "compress": override(default="none"),
        "src_node": override(help="Node that holds the export; without it all are asked"),
        "src_path": override(
            "--src-dir",
            metavar="<directory>",
            help="Directory of the export below that of all exports; the name of the instance"
            " without it",
        ),
    },
    also=creation.SIZE,
    new=True,
    options=(*creation.EXTRAS, *o.JOB_OPTIONS),
    usage="[--src-node <node>] -n <node>[:<node>] <instance>",
)
def import_(call: Call) -> None:
    """Create an instance from an export and start it.

    Settings without an option come from the export: OS, parameters, disks, NICs and tags. MAC
    addresses are kept when the instance has the name that it had.
    """
    if call.opts.no_nics:
        raise errors.make_invalid_error(
            "--no-nics makes no sense here: without --net the NICs are those of the export"
        )
    wanted: JsonObject = creation.parameters(call, call.args[0], again=True)
    jobs.run_op(call, creation.OP, **{**wanted, "mode": "import"})


@BACKUP.command("list", options=(o.NODES, *o.LIST_OPTIONS), default_args="GNT_BACKUP_LIST")
def list_exports(call: Call) -> int:
    """List the exports on all nodes."""
    condition = arguments.filter_of_arguments(call.opts.nodes, name_field="node")
    return listing.show_list(call, "export", _LIST_FIELDS, condition=condition)


@BACKUP.command("list-fields", take_many("field"), options=o.LIST_FIELDS_OPTIONS)
def list_fields(call: Call) -> int:
    """List the fields that gnt-backup list can show."""
    return listing.show_fields(call, "export")


BACKUP.submits("remove", "OP_BACKUP_REMOVE", take_one("export", "instance_name"))
