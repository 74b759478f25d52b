"""gnt-image: what images there are, and where copies of them are."""

from __future__ import annotations

from typing import Any

from ganeti.base import units
from ganeti.cli import info, listing, output, selection
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many
from ganeti.cli.programs import IMAGE

_LIST_FIELDS = ("name", "disk_size", "file_size", "copies", "status", "description")
_INFO_FIELDS = (
    ("Image name", "name"),
    ("UUID", "uuid"),
    ("Status", "status"),
    ("Description", "description"),
    ("Smallest disk", "disk_size"),
    ("Size of the file", "file_size"),
    ("SHA-256 of the file", "sha256"),
    ("Made from", "source"),
    ("Format of the source", "source_format"),
    ("SHA-256 of the source", "source_sha256"),
    ("Copies on", "nodes"),
    ("Instances", "inst_list"),
    ("Serial number", "serial_no"),
    ("Created", "ctime"),
    ("Changed", "mtime"),
)


@IMAGE.command("list", take_many("image"), options=o.LIST_OPTIONS)
def list_images(call: Call) -> int:
    """List images.

    Arguments are names, patterns, or one filter such as 'disk_size < 4096'.
    """
    joined = dict.fromkeys(("nodes", "inst_list", "tags"), output.join_items)
    return listing.show_list(call, "image", _LIST_FIELDS, texts=joined)


@IMAGE.command("list-fields", take_many("field"), options=o.LIST_FIELDS_OPTIONS)
def list_fields(call: Call) -> int:
    """List the fields that gnt-image list can show."""
    return listing.show_fields(call, "image")


@IMAGE.command("info", take_many("image"), aliases=("show",), options=(o.INFO_FORMAT,))
def show_info(call: Call) -> None:
    """Show images, what they were made from and which nodes have a copy (all without arguments)."""
    if call.args:
        known = call.client.query_images([], ("name", "uuid"))
        selection.refuse_unknown(call.client, "image", call.args, known)
    rows = call.client.query_images(call.args, [field for _title, field in _INFO_FIELDS])
    info.show(
        call,
        [
            [(title, _format(field, value)) for (title, field), value in zip(_INFO_FIELDS, row)]
            for row in rows
        ],
    )


def _format(field: str, value: Any) -> object:
    if field.endswith("_size"):
        return units.format_size(value, "h")
    if field.endswith("time"):
        return output.timestamp(value)
    return ", ".join(value) if isinstance(value, list) else value
