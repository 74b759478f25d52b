"""gnt-disk: what disks there are, where they are and whom they belong to."""

from __future__ import annotations

from ganeti.base import units
from ganeti.base.json_types import JsonObject
from ganeti.cli import info, listing, output, tags
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many
from ganeti.cli.programs import DISK
from ganeti.filters.glob import GLOB_CHARS

_LIST_FIELDS = ("uuid", "name", "size", "template", "nodes", "instance", "index", "mode")
_INFO_FIELDS = (
    "uuid",
    "name",
    "size",
    "template",
    "mode",
    "spindles",
    "max_iops",
    "max_bandwidth",
    "instance",
    "index",
    "nodes",
    "path",
    "volumes",
    "minors",
    "logical_id",
    "params",
    "forthcoming",
    "tags",
    "serial_no",
    "ctime",
    "mtime",
)

tags.add_commands(DISK, "disk", "disk")


@DISK.command("list", take_many("disk"), options=o.LIST_OPTIONS, default_args="GNT_DISK_LIST")
def list_disks(call: Call) -> int:
    """List disks, those of instances and detached ones.

    Arguments are uuids, names, patterns of names, or one filter such as 'not attached'.
    """
    patterns = any(GLOB_CHARS.intersection(arg) for arg in call.args)
    joined = dict.fromkeys(("nodes", "groups", "tags", "volumes"), output.join_items)
    return listing.show_list(
        call, "disk", _LIST_FIELDS, texts=joined, name_field="name" if patterns else "uuid"
    )


@DISK.command("list-fields", take_many("field"), options=o.LIST_FIELDS_OPTIONS)
def list_fields(call: Call) -> int:
    """List the fields that gnt-disk list can show."""
    return listing.show_fields(call, "disk")


@DISK.command("info", take_many("disk"), aliases=("show",), options=(o.INFO_FORMAT,))
def show_info(call: Call) -> None:
    """Show everything that is recorded of disks (all without arguments).

    Name a disk by its UUID, its name, or instance and index as in web1.example.com/0.
    """
    wanted = ["|", *(["==", "uuid", name] for name in call.args)] if call.args else None
    result = call.client.query("disk", list(_INFO_FIELDS), wanted)
    found = [
        dict(zip(_INFO_FIELDS, (value for _status, value in row), strict=True))
        for row in result.data
    ]
    info.show(call, [_disk_info(disk) for disk in found])


def _disk_info(disk: JsonObject) -> list[info.Pair]:
    owner = "none (detached)"
    if disk["instance"] is not None:
        owner = f"{disk['instance']}, disk {disk['index']}"
    found: list[info.Pair] = [
        ("Disk", disk["uuid"]),
        ("Name", disk["name"]),
        ("Size", units.format_size(disk["size"], "h")),
        ("Template", disk["template"]),
        ("Access mode", disk["mode"]),
        ("Instance", owner),
        ("Nodes", ", ".join(disk["nodes"]) or "all"),
    ]
    if disk["path"] is not None:
        found.append(("Path", disk["path"]))
    elif disk["volumes"] is not None:
        found.append(("Volumes", ", ".join(disk["volumes"])))
    else:
        found.append(("Logical ID", "/".join(map(str, disk["logical_id"]))))
    if disk["minors"] is not None:
        found.append(("Minors", ", ".join(map(str, disk["minors"]))))
    if disk["spindles"] is not None:
        found.append(("Spindles", disk["spindles"]))
    if disk["max_iops"]:
        found.append(("Max IOPS", disk["max_iops"]))
    if disk["max_bandwidth"]:
        found.append(("Max bandwidth", f"{disk['max_bandwidth']} MiB/s"))
    if disk["params"]:
        found.append(("Parameters", disk["params"]))
    if disk["forthcoming"]:
        found.append(("Forthcoming", "yes: reserved, or its creation did not end"))
    return [
        *found,
        ("Tags", ", ".join(disk["tags"])),
        ("Serial number", disk["serial_no"]),
        ("Created", output.timestamp(disk["ctime"])),
        ("Changed", output.timestamp(disk["mtime"])),
    ]
