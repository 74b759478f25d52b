"""The configuration of a cluster of one node."""

from __future__ import annotations

from ganeti import constants
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config, ConfigData
from ganeti.model.group import NodeGroup
from ganeti.model.node import Node


def make_config() -> Config:
    """The node ``node0`` (uuid ``node-0``) in the group ``default`` (``group-0``)."""
    node = Node(
        uuid="node-0",
        name="node0",
        primary_ip="192.0.2.1",
        secondary_ip="192.0.2.1",
        group="group-0",
        master_candidate=True,
    )
    cluster = Cluster(
        uuid="cluster",
        cluster_name="c",
        master_node="node-0",
        master_ip="192.0.2.9",
        master_netdev="eth0",
        master_netmask=24,
    )
    data = ConfigData(
        version=constants.CONFIG_VERSION,
        cluster=cluster,
        nodes={"node-0": node},
        nodegroups={"group-0": NodeGroup(uuid="group-0", name="default")},
    )
    return Config(data)
