"""What a node gets of a disk: logical parameters, and what only holds there."""

from __future__ import annotations

from ganeti import constants
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config, ConfigData
from ganeti.model.disk import Disk
from ganeti.model.group import NodeGroup
from ganeti.model.names import DiskTemplate
from ganeti.model.node import Node
from ganeti.model.params import DISK_PARAM_DEFAULTS
from ganeti.ops import annotate

DATA = Disk(uuid="d-data", dev_type=DiskTemplate.PLAIN, logical_id=("xenvg", "a.data"), size=1024)
META = Disk(uuid="d-meta", dev_type=DiskTemplate.PLAIN, logical_id=("xenvg", "a.meta"), size=128)
DRBD = Disk(
    uuid="d", dev_type=DiskTemplate.DRBD, logical_id=("n1", "n2", 11000, 3, 5, "secret"),
    children=(DATA, META), nodes=("n1", "n2"), iv_name="disk/0", size=1024,
)  # fmt: skip


def node(number: int) -> Node:
    return Node(uuid=f"n{number}", name=f"node{number}", primary_ip=f"192.0.2.{number}",
                secondary_ip=f"198.51.100.{number}", group="g")


def config() -> Config:
    params = {name: dict(values) for name, values in DISK_PARAM_DEFAULTS.items()}
    params["drbd"].update({"data-stripes": 2, "metavg": "fast"})
    params["plain"]["stripes"] = 7
    cluster = Cluster(uuid="c", cluster_name="c", master_node="n1", master_ip="192.0.2.9",
                      master_netdev="lo", master_netmask=32, diskparams=params)
    return Config(ConfigData(
        version=constants.CONFIG_VERSION, cluster=cluster,
        nodes={f"n{number}": node(number) for number in (1, 2, 3)},
        nodegroups={"g": NodeGroup(uuid="g", name="default")},
    ))


def test_each_node_gets_its_own_end():
    here = annotate.disk(config(), DRBD, node(1)).dynamic_params
    there = annotate.disk(config(), DRBD, node(2)).dynamic_params
    assert here == {"local-ip": "198.51.100.1", "remote-ip": "198.51.100.2",
                    "local-minor": 3, "remote-minor": 5}
    assert there == {"local-ip": "198.51.100.2", "remote-ip": "198.51.100.1",
                     "local-minor": 5, "remote-minor": 3}


def test_a_node_that_is_no_end_gets_none():
    assert annotate.disk(config(), DRBD, node(3)).dynamic_params == {}


def test_parameters_are_those_of_the_layer():
    wire = annotate.disk(config(), DRBD, node(1))
    assert wire.params["default-metavg"] == "fast"
    assert not {"metavg", "data-stripes", "meta-stripes", "disk-barriers"} & set(wire.params)
    assert [child.params["stripes"] for child in wire.children] == [2, 1]
    assert annotate.disk(config(), DATA, node(1)).params == {"stripes": 7}
