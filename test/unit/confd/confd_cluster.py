"""A configuration with something to answer to each kind of request."""

from __future__ import annotations

from ganeti import constants
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config, ConfigData
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate, HypervisorName
from ganeti.model.group import NodeGroup
from ganeti.model.instance import Instance
from ganeti.model.nic import Nic
from ganeti.model.node import Node

SECRET = "0123456789abcdef"


def node(number: int, **more: bool) -> Node:
    return Node(
        uuid=f"node-{number}",
        name=f"node{number}.example.com",
        group="group-1",
        primary_ip=f"192.0.2.{number}",
        secondary_ip=f"198.51.100.{number}",
        serial_no=10 + number,
        **more,
    )


def config() -> Config:
    cluster = Cluster(
        uuid="cluster-1",
        cluster_name="cluster.example.com",
        master_node="node-1",
        master_ip="192.0.2.250",
        master_netdev="eth0",
        master_netmask=24,
        nicparams={"default": {"mode": "bridged", "link": "br0", "vlan": ""}},
        osparams_private_cluster={"debian": {"root": "hush"}},
        data_collectors={"drbd": {"active": True, "interval": 5000000}},
        serial_no=7,
    )
    nodes = [
        node(1, master_candidate=True),
        node(2, master_candidate=True),
        node(3),
        node(4, offline=True),
        node(5, drained=True),
    ]
    drbd = Disk(
        uuid="disk-1",
        dev_type=DiskTemplate.DRBD,
        iv_name="disk/0",
        size=512,
        logical_id=("node-1", "node-2", 11000, 3, 4, SECRET),
        nodes=("node-1", "node-2"),
    )
    nics = (
        Nic(uuid="nic-1", mac="aa:00:00:00:00:01", ip="10.0.0.1"),
        Nic(uuid="nic-2", mac="aa:00:00:00:00:02", ip="10.1.0.1", nicparams={"link": "br1"}),
        Nic(uuid="nic-3", mac="aa:00:00:00:00:03"),
    )
    web = Instance(
        uuid="inst-1",
        name="web1.example.com",
        primary_node="node-1",
        hypervisor=HypervisorName.FAKE,
        nics=nics,
        disks=("disk-1",),
        osparams_private={"root": "hush"},
        serial_no=21,
    )
    return Config(
        ConfigData(
            version=constants.CONFIG_VERSION,
            cluster=cluster,
            nodes={item.uuid: item for item in nodes},
            nodegroups={"group-1": NodeGroup(uuid="group-1", name="default")},
            instances={web.uuid: web},
            disks={drbd.uuid: drbd},
        )
    )
