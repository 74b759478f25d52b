"""Read a cluster from the master daemon."""

from __future__ import annotations

from pathlib import Path

from ganeti.base.json_types import JsonObject
from ganeti.htools import objects
from ganeti.luxi.client import Client
from ganeti.placement.facts import Cluster

#: Fields of each kind, in the order that these programs have always asked for them.
_NODE = (
    *("name", "mtotal", "mnode", "mfree", "dtotal", "dfree", "ctotal", "cnos", "offline"),
    *("drained", "vm_capable", "ndp/spindle_count", "group.uuid", "tags"),
    *("ndp/exclusive_storage", "sptotal", "spfree", "ndp/cpu_speed", "hv_state", "disk_state"),
)
_INSTANCE = (
    *("name", "disk_usage", "be/memory", "be/vcpus", "status", "pnode", "snodes", "tags"),
    *("be/auto_balance", "disk_template", "be/spindle_use", "disk.sizes", "disk.spindles"),
    "forthcoming",
)
_GROUP = ("uuid", "name", "alloc_policy", "ipolicy", "tags")


def read(socket: str, static_memory: int) -> Cluster:
    """Ask the master daemon behind ``socket`` ("": that of this node)."""
    with Client(Path(socket) if socket else None) as client:
        nodes = _rows(client, "node", _NODE)
        instances = _rows(client, "instance", _INSTANCE)
        info = client.query_cluster_info()
        groups = _rows(client, "group", _GROUP)
    return objects.build(groups, nodes, instances, info, static_memory)


def _rows(client: Client, kind: str, fields: tuple[str, ...]) -> list[JsonObject]:
    result = client.query(kind, fields)

    def value(cell: tuple[int, object]) -> object:
        return cell[1] if cell[0] == 0 else None

    return [dict(zip(fields, map(value, row))) for row in result.data]
