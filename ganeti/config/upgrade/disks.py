"""Disks have a container of their own; until 2.13 they were inside the instances.

Then a disk's type was called otherwise, too, all disks of an instance were of the template that
the instance had, and which nodes a disk lies on was worked out from both.
"""

from __future__ import annotations

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config.upgrade import shape
from ganeti.config.upgrade.identity import make_uuid
from ganeti.config.upgrade.report import Report
from ganeti.model.enums import DiskTemplate
from ganeti.storage.registry import templates_with

#: Former name of a type -> its name.
_TYPES = {"lvm": "plain", "drbd8": "drbd"}
#: Templates whose disks were once of type ``file``.
_FILE_LIKE = ("sharedfile", "gluster")
_STAMPS = ("ctime", "mtime", "serial_no", "nodes", "forthcoming")


def upgrade(raw: JsonObject, report: Report) -> None:
    """Move the disks inside instances to the top; the template goes with them."""
    for path, disk in shape.disks(raw):
        _type(disk, path, "", report)
    for key, instance in raw["instances"].items():
        path = f"instances/{shape.label(instance, key)}"
        template = instance.pop("disk_template", None)
        if template is not None:
            report.note_drop(f"{path}/disk_template", f"each disk has its own ({template})")
        instance["disks"] = [
            disk if isinstance(disk, str) else _move(raw, instance, index, str(template), report)
            for index, disk in enumerate(instance.get("disks", []))
        ]
    for key, disk in raw["disks"].items():
        _parts(disk, raw["cluster"]["uuid"], f"disks/{shape.label(disk, key)}", report)


def _parts(disk: JsonObject, cluster: str, path: str, report: Report) -> None:
    """Add missing uuids and nodes to the parts of a disk, at any depth; its nodes are theirs."""
    for number, child in enumerate(disk.get("children", [])):
        where = f"{path}/children/{number}"
        if not child.get("uuid"):
            child["uuid"] = make_uuid(cluster, disk["uuid"], str(number))
            report.added(f"{where}/uuid", child["uuid"])
        if not child.get("nodes"):
            child["nodes"] = list(disk.get("nodes", []))
        _parts(child, cluster, where, report)


def _move(raw: JsonObject, instance: JsonObject, index: int, template: str, report: Report) -> str:
    """Put one disk into the container; its uuid."""
    disk: JsonObject = instance["disks"][index]
    path = f"instances/{shape.label(instance, instance['uuid'])}/disks/{index}"
    _type(disk, path, template, report)
    if not disk.get("uuid"):
        disk["uuid"] = make_uuid(raw["cluster"]["uuid"], instance["uuid"], "disk", str(index))
        report.added(f"{path}/uuid", disk["uuid"])
    if disk["uuid"] in raw["disks"]:
        raise errors.ConfigurationError(f"{path}: another disk has the uuid {disk['uuid']}, too")
    if not disk.get("nodes"):
        disk["nodes"] = _nodes(disk, instance)
    disk.setdefault("iv_name", f"disk/{index}")
    for key, default in (("ctime", 0.0), ("mtime", 0.0), ("serial_no", 1)):
        disk.setdefault(key, instance.get(key, default) if key != "serial_no" else default)
    raw["disks"][disk["uuid"]] = disk
    report.note_change(path, f"an object of its own, {disk['uuid']}")
    return str(disk["uuid"])


def _type(disk: JsonObject, path: str, template: str, report: Report) -> None:
    former = disk.get("dev_type")
    name = _TYPES.get(str(former), former)
    if name == "file" and template in _FILE_LIKE:
        name = template
    if name != former:
        disk["dev_type"] = name
        report.note_change(f"{path}/dev_type", f"{former} is called {name}")
    for index, child in enumerate(disk.get("children", [])):
        _type(child, f"{path}/children/{index}", "", report)


def _nodes(disk: JsonObject, instance: JsonObject) -> list[object]:
    if disk.get("dev_type") == "drbd":
        return [str(node) for node in disk.get("logical_id", [])[:2]]
    if disk.get("dev_type") in templates_with(lambda traits: traits.shared):
        return []
    return [instance["primary_node"]] if instance.get("primary_node") else []


# the way back --------------------------------------------------------------------------------


def find_mixed_disks(raw: JsonObject) -> list[str]:
    """Why disks cannot go back into instances, a sentence for each instance; the way out, too."""
    found = []
    for key in sorted(raw["instances"], key=lambda key: str(raw["instances"][key].get("name"))):
        instance = raw["instances"][key]
        kinds = [str(disk.get("dev_type")) for disk in _list_attached(raw, instance)]
        if len(set(kinds)) < 2:
            continue
        name = shape.label(instance, key)
        most = max(dict.fromkeys(kinds), key=kinds.count)
        # From the last one on, so that the numbers of the others stay as they are.
        commands = [
            f"gnt-instance modify --disk {index}:detach {name}"
            for index, kind in reversed(list(enumerate(kinds)))
            if kind != most
        ]
        found.append(
            f"instance {name} has disks of several templates ({', '.join(kinds)}), which the"
            f" older version cannot have. Detach some first:\n  " + "\n  ".join(commands)
        )
    return found


def _list_attached(raw: JsonObject, instance: JsonObject) -> list[JsonObject]:
    return [raw["disks"][uuid] for uuid in instance.get("disks", []) if uuid in raw["disks"]]


def downgrade(raw: JsonObject, report: Report) -> None:
    """Put disks back into their instances; those of no instance are left out."""
    attached: set[str] = set()
    for instance in raw["instances"].values():
        own = _list_attached(raw, instance)
        attached.update(instance.get("disks", []))
        kinds = {str(disk.get("dev_type")) for disk in own}
        instance["disk_template"] = kinds.pop() if kinds else str(DiskTemplate.DISKLESS)
        instance["disks"] = [_remove_stamps(disk) for disk in own]
    for uuid, disk in raw["disks"].items():
        if uuid not in attached:
            report.note_drop(f"disks/{shape.label(disk, uuid)}", "it is attached to no instance")
            report.warn(
                f"disk {shape.label(disk, uuid)} ({uuid}, {disk.get('dev_type')},"
                f" {disk.get('size')} MiB) is attached to no instance and will be forgotten; what"
                f" is on it stays where it is: {_place(disk)}"
            )
    del raw["disks"]
    report.note_change("disks", "inside their instances")


def _remove_stamps(disk: JsonObject) -> JsonObject:
    result = {key: value for key, value in disk.items() if key not in _STAMPS}
    result["children"] = [_remove_stamps(child) for child in disk.get("children", [])]
    return result


def _place(disk: JsonObject) -> str:
    """Return the place of the data of a disk, for people; without the secret of a mirror."""
    if disk.get("dev_type") == "drbd":
        return ", ".join(_place(child) for child in disk.get("children", [])) or "(unknown)"
    where = "/".join(str(part) for part in disk.get("logical_id", []))
    nodes = ", ".join(disk.get("nodes", []))
    return f"{where} on {nodes}" if nodes else where
