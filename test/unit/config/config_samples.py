"""A small sound cluster, and a store of it in a directory."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ganeti import constants
from ganeti.config import store
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config, ConfigData
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate, HypervisorName
from ganeti.model.group import NodeGroup
from ganeti.model.instance import Instance
from ganeti.model.network import Network
from ganeti.model.nic import Nic
from ganeti.model.node import Node
from ganeti.paths import Paths


class SetClock:
    def __init__(self) -> None:
        self.time = 1_700_000_000.5

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


def node(number: int, **more: Any) -> Node:
    values: dict[str, Any] = {
        "uuid": f"node-{number}",
        "name": f"node{number}.example.com",
        "group": "group-1",
        "primary_ip": f"192.0.2.{number}",
        "secondary_ip": f"198.51.100.{number}",
    }
    return Node(**{**values, **more})


def disk(uuid: str, instance: str, index: int = 0, **more: Any) -> Disk:
    values: dict[str, Any] = {
        "uuid": uuid,
        "dev_type": DiskTemplate.FILE,
        "iv_name": f"disk/{index}",
        "size": 512,
        "logical_id": ("loop", f"/srv/file-storage/{instance}/{uuid}"),
        "nodes": ("node-1",),
    }
    return Disk(**{**values, **more})


def instance(number: int, **more: Any) -> Instance:
    values: dict[str, Any] = {
        "uuid": f"inst-{number}",
        "name": f"web{number}.example.com",
        "primary_node": "node-1",
        "os": "debian",
        "hypervisor": HypervisorName.FAKE,
        "nics": (Nic(uuid=f"nic-{number}", mac=f"aa:00:00:00:00:{number:02x}"),),
    }
    return Instance(**{**values, **more})


def cluster(**more: Any) -> Cluster:
    values: dict[str, Any] = {
        "uuid": "cluster-1",
        "cluster_name": "cluster.example.com",
        "master_node": "node-1",
        "master_ip": "192.0.2.250",
        "master_netdev": "eth0",
        "master_netmask": 24,
        "enabled_hypervisors": ("fake",),
        "hvparams": {"fake": {"migration_mode": "live"}},
        "enabled_disk_templates": ("file",),
        "candidate_certs": {"node-1": "ab:cd"},
        "file_storage_dir": "/srv/file-storage",
        "ndparams": {"ssh_port": 22},
        "tags": ("prod", "web"),
    }
    return Cluster(**{**values, **more})


def data(**more: Any) -> ConfigData:
    """Three nodes, one group, a network, and one instance with a disk."""
    values: dict[str, Any] = {
        "version": constants.CONFIG_VERSION,
        "cluster": cluster(),
        "nodes": {
            n.uuid: n for n in (node(1, master_candidate=True), node(2), node(3, offline=True))
        },
        "nodegroups": {"group-1": NodeGroup(uuid="group-1", name="default")},
        "networks": {"net-1": Network(uuid="net-1", name="lan", network="10.0.0.0/24")},
        "instances": {"inst-1": instance(1, disks=("disk-1",))},
        "disks": {"disk-1": disk("disk-1", "web1.example.com")},
        "serial_no": 5,
    }
    return ConfigData(**{**values, **more})


def config(**more: Any) -> Config:
    return Config(data(**more))


def rooted(directory: Path, **more: Any) -> Paths:
    """A root with a configuration in it."""
    paths = Paths(directory / "root")
    paths.data.mkdir(parents=True)
    store.write_checkpoint(config(**more), paths)
    return paths


@contextmanager
def full_disk(path: Path, more: int = 10) -> Iterator[None]:
    """No file can grow more than a few bytes beyond the present size of ``path``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
