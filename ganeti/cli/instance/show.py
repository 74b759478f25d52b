"""gnt-instance: what instances there are and how they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ganeti import errors
from ganeti.base import units
from ganeti.base.json_types import JsonObject
from ganeti.base.text import natural_sorted
from ganeti.cli import info, jobs, listing, output, tags
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many
from ganeti.cli.fields import override
from ganeti.cli.programs import INSTANCE
from ganeti.luxi.client import FieldDef, QueryResult

_LIST_FIELDS = ("name", "hypervisor", "os", "pnode", "status", "oper_ram")
#: Fields whose lists are shown with commas; all others keep their brackets.
_LISTS = (
    "tags",
    "disk.sizes",
    "nic.macs",
    "nic.ips",
    "nic.modes",
    "nic.links",
    "nic.bridges",
    "nic.networks",
    "snodes",
    "snodes.group",
    "snodes.group.uuid",
)

tags.add_commands(INSTANCE, "instance", "instance")


@INSTANCE.command(
    "list", take_many("instance"), options=o.LIST_OPTIONS, default_args="GNT_INSTANCE_LIST"
)
def list_instances(call: Call) -> int:
    """List instances.

    Arguments are names, patterns such as 'web*', or one filter such as 'pnode == "node1"'.
    """
    return listing.show_list(
        call,
        "instance",
        _LIST_FIELDS,
        texts=dict.fromkeys(_LISTS, output.join_items),
        on_terminal=listing.OnTerminal(_LIST_FIELDS, ("forthcoming",), _put_reservations_last),
    )


def _put_reservations_last(result: QueryResult) -> QueryResult:
    """Reservations after instances, with a status of their own."""
    fields = result.fields[:-1]
    rows = sorted(result.data, key=lambda row: bool(row[-1][1]))
    return QueryResult(fields, [_mark(fields, row) for row in rows])


def _mark(
    fields: Sequence[FieldDef], row: Sequence[tuple[int, object]]
) -> list[tuple[int, object]]:
    *cells, (_status, forthcoming) = row
    return [
        (0, "reserved") if forthcoming and item.name == "status" else cell
        for item, cell in zip(fields, cells, strict=True)
    ]


@INSTANCE.command("list-fields", take_many("field"), options=o.LIST_FIELDS_OPTIONS)
def list_fields(call: Call) -> int:
    """List the fields that gnt-instance list can show."""
    return listing.show_fields(call, "instance")


@INSTANCE.command(
    "info",
    take_many("instance"),
    aliases=("show",),
    op="OP_INSTANCE_QUERY_DATA",
    only=("static",),
    names={"static": override("-s", "--static")},
    options=(o.ALL, o.ROMAN, o.INFO_FORMAT, o.PRIORITY),
    usage="{--all | <instance>...}",
)
def show_info(call: Call) -> None:
    """Show everything about instances: state, nodes, parameters, NICs and disks."""
    names, opts = call.args, call.opts
    if bool(names) == opts.show_all:
        raise errors.make_invalid_error("Name the instances to show, or use --all for all of them")
    found = jobs.run_op(call, "OP_INSTANCE_QUERY_DATA", instances=names, static=opts.static)
    order = list(found) if names else natural_sorted(found)
    info.show(call, [_instance(found[name]) for name in order])


def _reservation_text(item: Mapping[str, Any]) -> str:
    """For whom and how long a place is kept."""
    parts = ["reserved"]
    if item.get("owner"):
        parts.append(f"for {item['owner']}")
    if item.get("expires") is not None:
        parts.append(f"until {output.timestamp(item['expires'])}")
    if item.get("reason"):
        parts.append(f"({item['reason']})")
    return " ".join(parts)


def _instance(item: Mapping[str, Any]) -> list[info.Pair]:
    state = f"configured to be {item['config_state']}"
    if item["run_state"]:
        state += f", actual state is {item['run_state']}"
    reserved = item.get("reservation")
    if reserved is not None:
        state = _reservation_text(reserved)
    result: list[info.Pair] = [
        ("Instance name", item["name"] or item["uuid"]),
        ("UUID", item["uuid"]),
        ("Serial number", item["serial_no"]),
        ("Creation time", output.timestamp(item["ctime"])),
        ("Modification time", output.timestamp(item["mtime"])),
        ("State", state),
        ("Nodes", _nodes(item)),
        ("Operating system", item["os"]),
        ("Operating system parameters", info.mark_defaults(item["os_actual"], item["os_instance"])),
    ]
    if "network_port" in item:
        result.append(("Allocated network port", item["network_port"]))
    result.append(("Hypervisor", item["hypervisor"]))
    address = _vnc_address(item)
    if address:
        result.append(("console connection", address))
    return [
        *result,
        ("Hypervisor parameters", info.mark_defaults(item["hv_actual"], item["hv_instance"])),
        ("Back-end parameters", _backend(item["be_actual"], item["be_instance"])),
        ("NICs", [_nic(index, nic) for index, nic in enumerate(item["nics"])]),
        ("Disk template", item["disk_template"]),
        ("Disks", [_disk(disk, f"disk {index}") for index, disk in enumerate(item["disks"])]),
    ]


def _nodes(item: Mapping[str, Any]) -> list[list[info.Pair]]:
    secondaries = zip(
        item["snodes"], item["snodes_group_names"], item["snodes_group_uuids"], strict=True
    )
    group = f"{item['pnode_group_name']} (UUID {item['pnode_group_uuid']})"
    return [
        [("primary", item["pnode"]), ("group", group)],
        [
            (
                "secondaries",
                ", ".join(
                    f"{name} (group {where}, group UUID {uuid})"
                    for name, where, uuid in secondaries
                ),
            )
        ],
    ]


def _backend(actual: Mapping[str, object], own: Mapping[str, object]) -> JsonObject:
    """Back-end parameters, with ``memory`` as the old name of ``maxmem``."""
    shown, set_here = dict(actual), dict(own)
    if "maxmem" in shown:
        shown.setdefault("memory", shown["maxmem"])
    if "maxmem" in set_here:
        set_here.setdefault("memory", set_here["maxmem"])
    return info.mark_defaults(shown, set_here)


def _vnc_address(item: Mapping[str, Any]) -> str:
    """The address of the VNC display; empty if there is none."""
    bound = item["hv_actual"].get("vnc_bind_address")
    port = item.get("network_port")
    if not bound:
        return ""
    if str(bound).startswith("/"):
        return f"vnc to {item['pnode']}:{bound}/{item['name']}.vnc"
    host = item["pnode"] if bound in ("0.0.0.0", "::") else bound
    on_node = f" on node {item['pnode']}" if bound in ("127.0.0.1", "::1") else ""
    display = f" (display {port - 5900})" if isinstance(port, int) else ""
    return f"vnc to {host}:{port}{display}{on_node}"


def _nic(index: int, nic: Sequence[object]) -> list[info.Pair]:
    name, uuid, ip, mac, mode, link, vlan, network_uuid, network = nic
    shown = network["name"] if isinstance(network, Mapping) else network_uuid
    return [
        (f"nic/{index}", ""),
        ("MAC", mac),
        ("IP", ip),
        ("mode", mode),
        ("link", link),
        ("vlan", vlan),
        ("network", shown),
        ("UUID", uuid),
        ("name", name),
    ]


def _disk(disk: Mapping[str, Any], otherwise: str, *, child: bool = False) -> list[info.Pair]:
    size = disk["size"]
    shown = units.format_size(size, "h") if isinstance(size, int) else size
    result: list[info.Pair] = [(disk["iv_name"] or otherwise, f"{disk['dev_type']}, size {shown}")]
    if not child:
        if disk["spindles"] is not None:
            result.append(("spindles", disk["spindles"]))
        result.append(("access mode", disk["mode"]))
        if "max_iops" in disk:
            result.append(("max IOPS", disk["max_iops"]))
        if "max_bandwidth" in disk:
            result.append(("max bandwidth", f"{disk['max_bandwidth']} MiB/s"))
    result += _place(disk)
    for title, status in (("on primary", disk["pstatus"]), ("on secondary", disk["sstatus"])):
        if status:
            result.append((title, _status(disk["dev_type"], status)))
    result += [("name", disk["name"]), ("UUID", disk["uuid"])]
    if disk["children"]:
        parts = enumerate(disk["children"])
        result.append(
            ("child devices", [_disk(part, f"child {i}", child=True) for i, part in parts])
        )
    return result


def _place(disk: Mapping[str, Any]) -> list[info.Pair]:
    """The place of a disk, without the secret that its nodes share."""
    drbd = disk["drbd_info"]
    if drbd:
        return [
            ("nodeA", f"{drbd['primary_node']}, minor={drbd['primary_minor']}"),
            ("nodeB", f"{drbd['secondary_node']}, minor={drbd['secondary_minor']}"),
            ("port", drbd["port"]),
        ]
    if not disk["logical_id"] or disk["dev_type"] == "drbd":
        return []
    place = disk["logical_id"]
    if disk["dev_type"] == "plain":
        return [("logical_id", "/".join(map(str, place)))]
    return [("logical_id", info.Flow(place))]


def _status(kind: str, status: Sequence[object]) -> str:
    """State of a disk on a node: device, and how far a mirror is in sync."""
    from ganeti.model.enums import LocalDisk  # only details of mirrored disks need it

    path, major, minor, percent, left, degraded, local = status
    numbers = ":".join("N/A" if number is None else str(number) for number in (major, minor))
    text = f"{path} ({numbers})"
    if kind != "drbd":
        return text
    if percent is not None:
        rest = "unknown" if left is None else f"{left} seconds"
        text += f", *RECOVERING* {percent:5.2f}%, time left {rest}"
    elif not degraded:
        text += " in sync"
    if degraded:
        text += ", status *DEGRADED*" + (" *MISSING DISK*" if local == LocalDisk.FAULTY else "")
    elif percent is None:
        text += ", status ok"
    return text
