"""Everything is known by its uuid: keys of containers and references from one object to another.

Until 2.9, nodes and instances were keyed by their names, and referred to by them. An object without
a uuid gets one that is made of the cluster's uuid and where it is: upgrades of the same file give
the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config.upgrade import shape
from ganeti.config.upgrade.report import Report

_CONTAINERS = ("nodes", "nodegroups", "instances", "networks", "disks", "filters")
#: Places of node names or uuids in the logical id of a DRBD disk.
_DRBD_NODES = (0, 1)
_DRBD = ("drbd", "drbd8")

Lookup = Callable[[Any], Any]


def upgrade(raw: JsonObject, report: Report) -> None:
    """Key all containers by uuid and turn references by name into references by uuid."""
    if not raw["cluster"].get("uuid"):
        raw["cluster"]["uuid"] = make_uuid("cluster", str(raw["cluster"].get("cluster_name")))
        report.added("cluster/uuid", raw["cluster"]["uuid"])
    found = {name: _key_by_uuid(raw, name, report) for name in _CONTAINERS}
    _references(raw, found, report)


def make_uuid(*words: str) -> str:
    """A uuid that is the same for the same words."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, "/".join(words)))


def _key_by_uuid(raw: JsonObject, container: str, report: Report) -> dict[str, str]:
    """Bring one container in order; the uuid of each name."""
    result: JsonObject = {}
    for key, obj in raw[container].items():
        path = f"{container}/{key}"
        if not obj.get("uuid"):
            own = key if _is_uuid(key) else make_uuid(raw["cluster"]["uuid"], container, key)
            obj["uuid"] = own
            report.added(f"{path}/uuid", own)
        if container in ("nodes", "instances") and not obj.get("name") and not _is_uuid(key):
            obj["name"] = key
            report.added(f"{path}/name", key)
        if obj["uuid"] in result:
            raise errors.ConfigurationError(
                f"{path}: another object of {container} has the uuid {obj['uuid']}, too"
            )
        if key != obj["uuid"]:
            report.note_change(path, f"known by its uuid {obj['uuid']}")
        result[obj["uuid"]] = obj
    raw[container] = result
    return {
        str(obj["name"]): key
        for key, obj in result.items()
        if obj.get("name") and obj["name"] not in result
    }


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _references(raw: JsonObject, found: Mapping[str, dict[str, str]], report: Report) -> None:
    nodes, groups = _lookup(found["nodes"]), _lookup(found["nodegroups"])
    networks = _lookup(found["networks"])
    _refer(raw["cluster"], "master_node", "cluster", nodes, report)
    for key, node in raw["nodes"].items():
        _refer(node, "group", f"nodes/{shape.label(node, key)}", groups, report)
    for key, group in raw["nodegroups"].items():
        _group_networks(group, f"nodegroups/{shape.label(group, key)}", networks, report)
    for key, instance in raw["instances"].items():
        path = f"instances/{shape.label(instance, key)}"
        _refer(instance, "primary_node", path, nodes, report)
        for index, nic in enumerate(instance.get("nics", [])):
            _refer(nic, "network", f"{path}/nics/{index}", networks, report)
            if not nic.get("uuid"):
                nic["uuid"] = make_uuid(raw["cluster"]["uuid"], instance["uuid"], "nic", str(index))
                report.added(f"{path}/nics/{index}/uuid", nic["uuid"])
    for path, disk in shape.disks(raw):
        _disk_nodes(disk, path, nodes, report)


def _lookup(names: Mapping[str, str]) -> Lookup:
    return lambda value: names.get(value, value) if isinstance(value, str) else value


def _refer(obj: JsonObject, key: str, path: str, lookup: Lookup, report: Report) -> None:
    if key in obj and lookup(obj[key]) != obj[key]:
        report.note_change(f"{path}/{key}", f"{obj[key]} is referred to by its uuid")
        obj[key] = lookup(obj[key])


def _group_networks(group: JsonObject, path: str, lookup: Lookup, report: Report) -> None:
    networks = group.get("networks", {})
    if any(lookup(key) != key for key in networks):
        group["networks"] = {lookup(key): value for key, value in networks.items()}
        report.note_change(f"{path}/networks", "networks are referred to by their uuids")


def _disk_nodes(disk: JsonObject, path: str, nodes: Lookup, report: Report) -> None:
    wanted = [nodes(node) for node in disk.get("nodes", [])]
    if wanted != disk.get("nodes", []):
        disk["nodes"] = wanted
        report.note_change(f"{path}/nodes", "nodes are referred to by their uuids")
    place = disk.get("logical_id", [])
    if disk.get("dev_type") in _DRBD and len(place) > max(_DRBD_NODES):
        for index in _DRBD_NODES:
            if nodes(place[index]) != place[index]:
                report.note_change(
                    f"{path}/logical_id", f"{place[index]} is referred to by its uuid"
                )
                place[index] = nodes(place[index])
    for index, child in enumerate(disk.get("children", [])):
        _disk_nodes(child, f"{path}/children/{index}", nodes, report)
