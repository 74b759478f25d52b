"""Configurations for tests of decisions: as a new cluster has them, with more nodes."""

from __future__ import annotations

from typing import Any

from ganeti.bootstrap import defaults
from ganeti.bootstrap.settings import InitSettings
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.group import NodeGroup
from ganeti.model.instance import Instance
from ganeti.model.names import DiskTemplate, HypervisorName
from ganeti.model.nic import Nic
from ganeti.model.node import Node


def node(number: int, group: str = "", **more: Any) -> Node:
    values: dict[str, Any] = {
        "uuid": f"node-{number}",
        "name": f"node{number}.example.com",
        "group": group,
        "primary_ip": f"192.0.2.{number}",
        "secondary_ip": f"192.0.2.{number}",
    }
    return Node(**{**values, **more})


def config(*nodes: Node, pool: int = 10, **cluster: Any) -> Config:
    """A new cluster whose master is node1; ``nodes`` are further ones in its group."""
    data = defaults.configuration(
        InitSettings(cluster_name="cluster.example.com", enabled_hypervisors=["fake"]),
        host="node1.example.com",
        address="192.0.2.1",
        master_ip="192.0.2.254",
        certificate_digest="AA",
        now=1.0,
    )
    [master] = data.nodes.values()
    table = {master.uuid: master}
    table |= {n.uuid: base.replace(n, group=n.group or master.group) for n in nodes}
    changed = base.replace(data.cluster, candidate_pool_size=pool, **cluster)
    return Config(base.replace(data, cluster=changed, nodes=table))


def with_group(of: Config, name: str, **more: Any) -> Config:
    group = NodeGroup(uuid=f"group-{name}", name=name, **more)
    return of.apply([("nodegroups", group.uuid, group)], [], None, mtime=2.0)


def with_instance(of: Config, name: str, *places: str, **more: Any) -> Config:
    """An instance with one disk: mirrored with two places (node uuids), else a file."""
    kind = DiskTemplate.DRBD if len(places) > 1 else DiskTemplate.FILE
    disk = Disk(
        uuid=f"disk-{name}",
        dev_type=kind,
        logical_id=("loop", f"/srv/{name}"),
        nodes=places,
        iv_name="disk/0",
        size=2048,
    )
    instance = Instance(
        uuid=f"inst-{name}",
        name=name,
        primary_node=places[0],
        os="noop",  # type: ignore[arg-type]
        hypervisor=HypervisorName.FAKE,
        disks=(disk.uuid,),  # type: ignore[arg-type]
        nics=(Nic(uuid=f"nic-{name}", mac="aa:00:00:00:00:01"),),
        **more,
    )
    return of.apply(
        [("disks", disk.uuid, disk), ("instances", instance.uuid, instance)], [], None, mtime=2.0
    )
