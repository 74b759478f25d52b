"""Disks as nodes get them: each node its own addresses, and nothing of the other's."""

from __future__ import annotations

import op_samples as samples

from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.ops import annotate
from ganeti.rpc.objects import localised
from ganeti.rpc.wire import encode


def drbd_config() -> tuple[Config, Disk]:
    config = samples.config(
        samples.node(2, secondary_ip="198.51.100.2"), samples.node(3, secondary_ip="198.51.100.3")
    )
    disk = Disk(
        uuid="d1",
        dev_type=DiskTemplate.DRBD,
        size=128,
        iv_name="disk/0",
        logical_id=("node-2", "node-3", 11000, 4, 7, "s3cret"),
        nodes=("node-2", "node-3"),
        children=(
            Disk(uuid="c1", dev_type=DiskTemplate.PLAIN, logical_id=("vg", "x_data"), size=128),
            Disk(uuid="c2", dev_type=DiskTemplate.PLAIN, logical_id=("vg", "x_meta"), size=128),
        ),
    )
    return config, disk


def test_each_node_gets_its_own_side() -> None:
    config, disk = drbd_config()
    group = config.nodes["node-2"].group
    wire = annotate.disk(config, disk, group)
    here = encode(localised(wire, "node-2"))
    there = encode(localised(wire, "node-3"))
    assert here["dynamic_params"] == {
        "local-ip": "198.51.100.2",
        "remote-ip": "198.51.100.3",
        "port": 11000,
        "local-minor": 4,
        "remote-minor": 7,
    }
    assert there["dynamic_params"] == {
        "local-ip": "198.51.100.3",
        "remote-ip": "198.51.100.2",
        "port": 11000,
        "local-minor": 7,
        "remote-minor": 4,
    }
    assert "places" not in here


def test_instance_and_lists_are_localised_too() -> None:
    config, disk = drbd_config()
    config = samples.with_instance(config, "web", "node-2")
    instance = config.instances["inst-web"]
    wire = annotate.instance(config, instance, disks=[disk])
    found = localised([("x", wire), {"d": list(wire.disks_info)}], "node-3")
    assert found[0][1].disks_info[0].dynamic_params["local-minor"] == 7
    assert found[1]["d"][0].dynamic_params["remote-minor"] == 4


def test_arguments_without_mirrors_are_not_copied() -> None:
    config = samples.with_instance(samples.config(), "web", next(iter(samples.config().nodes)))
    args = ["x", 1, {"a": [1, 2]}, annotate.disk(config, config.disks["disk-web"], "")]
    assert localised(args, "node-1") is args


def test_missing_node_gives_no_places() -> None:
    config, disk = drbd_config()
    gone = Config(base.replace(config.data, nodes={}))
    assert annotate.places(gone, disk) == {}
