"""Keys that are no more, and those that nobody knows: our objects have no place for them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.config.upgrade import shape
from ganeti.config.upgrade.report import Report
from ganeti.model.cluster import Cluster
from ganeti.model.config import CONTAINERS, ConfigData
from ganeti.model.disk import Disk
from ganeti.model.nic import Nic

_RUNNING = "it is only known while something runs"
#: Kind of object -> key -> why it is no more.
_GONE: Mapping[type[object], Mapping[str, str]] = {
    Cluster: {
        "default_hypervisor": "the first enabled hypervisor is the default",
        "default_bridge": "nicparams name the link",
        "enabled_storage_types": "enabled_disk_templates name it",
    },
    CONTAINERS["nodes"]: {"hv_state": _RUNNING, "disk_state": _RUNNING},
    CONTAINERS["nodegroups"]: {"hv_state": _RUNNING, "disk_state": _RUNNING},
    CONTAINERS["networks"]: {
        "network_type": "nothing depends on it",
        "family": "the address shows it",
        "size": "the address shows it",
    },
    CONTAINERS["instances"]: {"disks_info": _RUNNING},
    Disk: {
        "physical_id": "it is worked out when the disk is used",
        "dynamic_params": _RUNNING,
        "hvinfo": _RUNNING,
        "pci": _RUNNING,
    },
    Nic: {"bridge": "nicparams name it", "netinfo": _RUNNING, "hvinfo": _RUNNING, "pci": _RUNNING},
}


def upgrade(raw: JsonObject, report: Report) -> None:
    """Leave out all keys that our objects do not have."""
    _object(ConfigData, raw, "", report)
    _object(Cluster, raw["cluster"], "cluster", report)
    for container, cls in CONTAINERS.items():
        for key, obj in raw[container].items():
            path = f"{container}/{shape.label(obj, key)}"
            _object(cls, obj, path, report)
            for index, nic in enumerate(obj.get("nics", []) if container == "instances" else ()):
                _object(Nic, nic, f"{path}/nics/{index}", report)
            if container == "disks":
                _children(obj, path, report)


def _children(disk: JsonObject, path: str, report: Report) -> None:
    for index, child in enumerate(disk.get("children", [])):
        where = f"{path}/children/{index}"
        _object(Disk, child, where, report)
        _children(child, where, report)


def _object(cls: type[msgspec.Struct], obj: JsonObject, path: str, report: Report) -> None:
    known = {info.name for info in typed.fields(cls)}
    gone = _GONE.get(cls, {})
    for key in [key for key in obj if key not in known]:
        del obj[key]
        where = f"{path}/{key}".lstrip("/")
        if key in gone:
            report.note_drop(where, gone[key])
        else:
            report.note_unknown(where)
