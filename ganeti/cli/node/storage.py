"""gnt-node: volumes and storage units of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ganeti import errors
from ganeti.base.text import nearest
from ganeti.cli import formats, jobs, listing, notices, output, selection
from ganeti.cli import options as o
from ganeti.cli.command import Call, choice, take_many, take_one
from ganeti.cli.fields import override
from ganeti.cli.programs import NODE

#: Title and kind of each column.
_VOLUMES = {
    "node": ("Node", "text"),
    "phys": ("PhysDev", "text"),
    "vg": ("VG", "text"),
    "name": ("Name", "text"),
    "size": ("Size", "unit"),
    "instance": ("Instance", "text"),
}
_STORAGE = {
    "node": ("Node", "text"),
    "type": ("Type", "text"),
    "name": ("Name", "text"),
    "size": ("Size", "unit"),
    "used": ("Used", "unit"),
    "free": ("Free", "unit"),
    "allocatable": ("Allocatable", "bool"),
}


def _columns(call: Call, known: Mapping[str, tuple[str, str]]) -> list[str]:
    fields = listing.choose_fields(call.opts.output, list(known), lambda: list(known))
    for name in fields:
        if name not in known:
            raise errors.make_invalid_error(
                f"Unknown field '{name}'{nearest(name, known)}; choose from {', '.join(known)}",
            )
    return fields


def _print(
    call: Call, known: Mapping[str, tuple[str, str]], fields: list[str], rows: list[list[object]]
) -> None:
    opts = call.opts
    form = formats.choose(call)
    if form is not None:
        records = [dict(zip(fields, row, strict=True)) for row in rows]
        output.print_lines(formats.lines(form, fields, records, headers=not opts.no_headers))
        return
    output.print_lines(
        output.fixed_table(
            [known[name] for name in fields],
            rows,
            separator=opts.separator,
            headers=not opts.no_headers,
            unit=opts.units,
        )
    )


@NODE.command(
    "volumes",
    take_many("node"),
    options=(*o.TABLE_OPTIONS, o.UNITS, o.FIELDS, o.FORMAT, o.PRIORITY),
)
def volumes(call: Call) -> None:
    """List the logical volumes of nodes."""
    fields = _columns(call, _VOLUMES)
    rows = jobs.run_op(call, "OP_NODE_QUERYVOLS", output_fields=fields, nodes=call.args)
    if "size" in fields:
        place = fields.index("size")
        rows = [[*row[:place], int(row[place]), *row[place + 1 :]] for row in rows]
    _print(call, _VOLUMES, fields, rows)


@NODE.command("list-drbd", take_one("node"), options=o.TABLE_OPTIONS)
def list_drbd(call: Call) -> None:
    """List the DRBD minors of a node with their instances and peers."""
    name = selection.find_node(call.client, call.args[0])
    [[first, second]] = call.client.query_nodes([name], ["pinst_list", "sinst_list"])
    instances = sorted({*(first or ()), *(second or ())})
    found: Mapping[str, Any] = {}
    if instances:
        found = jobs.run_op(call, "OP_INSTANCE_QUERY_DATA", instances=instances, static=True)
    rows = [row for item in found.values() for row in _minors(item, name)]
    titles = ("Node", "Minor", "Instance", "Disk", "Role", "PeerNode")
    output.print_lines(
        output.table(
            titles,
            [[str(cell) for cell in row] for row in sorted(rows, key=lambda row: row[1])],
            right=[False] * len(titles),
            separator=call.opts.separator,
            headers=not call.opts.no_headers,
        )
    )


def _minors(instance: Mapping[str, Any], node: str) -> list[list[Any]]:
    """Rows of the mirrored disks of an instance that have a side on a node."""
    rows: list[list[Any]] = []
    for disk in instance["disks"]:
        ends = disk["drbd_info"] or {}
        for side, other in (("primary", "secondary"), ("secondary", "primary")):
            if ends.get(f"{side}_node") != node:
                continue
            role = "primary" if instance["pnode"] == node else "secondary"
            peer = ends[f"{other}_node"]
            minor = ends[f"{side}_minor"]
            rows.append([node, minor, instance["name"], disk["iv_name"], role, peer])
    return rows


@NODE.command(
    "list-storage",
    take_many("node", field="nodes"),
    op="OP_NODE_QUERY_STORAGE",
    only=("storage_type",),
    names={"storage_type": override("-t", "--storage-type")},
    options=(*o.TABLE_OPTIONS, o.UNITS, o.FIELDS, o.FORMAT, o.PRIORITY),
)
def list_storage(call: Call) -> None:
    """List the storage units of nodes with their sizes."""
    fields = _columns(call, _STORAGE)
    rows = jobs.run(call, output_fields=fields)
    _print(call, _STORAGE, fields, rows)


@NODE.command(
    "modify-storage",
    take_one("node"),
    choice("lvm-pv"),
    take_one("volume"),
    also={"StorageChanges": ("allocatable",)},
    options=o.JOB_OPTIONS,
)
def modify_storage(call: Call) -> None:
    """Change a storage unit of a node."""
    node, kind, name = call.args
    if call.opts.allocatable is None:
        notices.say("No changes to perform, exiting.")
        return
    jobs.run_op(
        call,
        "OP_NODE_MODIFY_STORAGE",
        node_name=node,
        storage_type=kind,
        name=name,
        changes={"allocatable": call.opts.allocatable},
    )


@NODE.command(
    "repair-storage",
    take_one("node", "node_name"),
    choice("lvm-vg", field="storage_type"),
    take_one("volume", "name"),
    op="OP_REPAIR_NODE_STORAGE",
    options=o.JOB_OPTIONS,
)
def repair_storage(call: Call) -> None:
    """Remove missing parts from a storage unit so that it can be used again."""
    jobs.run(call)
