"""Keys that came with some version: of the cluster, of groups, nodes, instances and disks."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.config.upgrade import shape
from ganeti.config.upgrade.report import Report
from ganeti.model.cluster import DATA_COLLECTORS, Cluster
from ganeti.model.config import CONTAINERS
from ganeti.model.enums import DiskTemplate
from ganeti.storage.registry import volume_templates

#: Values of a cluster from before there was a choice.
_BEFORE: Mapping[str, object] = {
    "gluster_storage_dir": "/var/run/ganeti/gluster",
    "ssh_key_type": "dsa",
    "ssh_key_bits": 1024,
}
#: Microseconds between two looks of a data collector.
_INTERVAL = 5_000_000
#: Templates in the order in which they are preferred; the first one is the default of new disks.
_PREFERENCE = (
    "blockdev",
    "diskless",
    "drbd",
    "ext",
    "file",
    "plain",
    "rbd",
    "sharedfile",
    "gluster",
)


def upgrade(raw: JsonObject, report: Report) -> None:
    """Add what is missing; disks must have their own container by now."""
    cluster = raw["cluster"]
    collectors = cluster.setdefault("data_collectors", {})
    for name in DATA_COLLECTORS:
        if name not in collectors:
            collectors[name] = {"active": True, "interval": _INTERVAL}
            report.added(f"cluster/data_collectors/{name}", collectors[name])
    if not cluster.get("enabled_disk_templates"):
        cluster["enabled_disk_templates"] = _templates(raw)
        report.added("cluster/enabled_disk_templates", cluster["enabled_disk_templates"])
    _complete(cluster, Cluster, _BEFORE, "cluster", report)
    for container, cls in CONTAINERS.items():
        for key, obj in raw[container].items():
            if obj.get("forthcoming"):
                # These leave out whatever is not known yet.
                continue
            special = _instance(obj) if container == "instances" else {}
            _complete(obj, cls, special, f"{container}/{shape.label(obj, key)}", report)
    for key, group in raw["nodegroups"].items():
        if group["members"]:
            group["members"] = []
            report.note_change(
                f"nodegroups/{shape.label(group, key)}/members", "the nodes name their group"
            )


def _templates(raw: JsonObject) -> list[str]:
    """Templates to enable: those in use, and those of volumes if there is a volume group."""
    used = {str(disk.get("dev_type")) for disk in raw["disks"].values()}
    if any(not instance.get("disks") for instance in raw["instances"].values()):
        used.add(DiskTemplate.DISKLESS)
    if raw["cluster"].get("volume_group_name"):
        used |= volume_templates()
    return [name for name in _PREFERENCE if name in used] or [str(DiskTemplate.DISKLESS)]


def _instance(instance: JsonObject) -> Mapping[str, object]:
    return {"disks_active": instance.get("admin_state") == "up"}


def _complete(
    obj: JsonObject,
    cls: type[msgspec.Struct],
    special: Mapping[str, object],
    path: str,
    report: Report,
) -> None:
    """Write out the keys that are missing and have a value of their own when they are."""
    for info in typed.fields(cls):
        if info.name in obj:
            continue
        if info.name in special:
            value = special[info.name]
        elif info.default_factory is not msgspec.NODEFAULT:
            value = msgspec.to_builtins(info.default_factory())
        elif info.default is msgspec.NODEFAULT or info.default is None:
            continue
        else:
            value = msgspec.to_builtins(info.default)
        obj[info.name] = list(value) if isinstance(value, tuple) else value
        if value or info.name in special:
            report.added(f"{path}/{info.name}", obj[info.name])
