"""The jobs that make the network between guests and nodes, and connect groups to it."""

from __future__ import annotations

from typing import Any

from op_samples import config, put, with_group

from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.network import Network
from ganeti.opcodes.network import OpNetworkAdd, OpNetworkConnect
from ganeti.opcodes.wire import to_wire
from ganeti.ops.planning import communication_network

NETWORK = Network(uuid="net-1", name="com", network="169.254.0.0/16")


def jobs(of: Config, *groups: str) -> list[list[Any]]:
    return communication_network.jobs(of, "com", groups, -10)


def test_one_job_makes_the_network_and_connects_the_groups() -> None:
    [[made, *connected]] = jobs(with_group(config(), "rack1"), "rack1", "default")
    assert isinstance(made, OpNetworkAdd)
    wire = to_wire(made)
    assert (wire["network_name"], wire["network"], wire["network6"]) == (
        "com",
        "169.254.0.0/16",
        "fe80::/10",
    )
    assert (wire["mac_prefix"], wire["conflicts_check"]) == ("52:54:00", False)
    assert wire["add_reserved_ips"] == ["169.254.169.254"]
    assert [type(op) for op in connected] == [OpNetworkConnect] * 2
    assert [op.group_name for op in connected] == ["default", "rack1"]
    first = to_wire(connected[0])
    assert (first["network_name"], first["network_mode"]) == ("com", "routed")
    assert (first["network_link"], first["conflicts_check"]) == ("communication_rt", False)
    assert {op.priority for op in (made, *connected)} == {-10}


def test_a_network_that_exists_is_not_made_again() -> None:
    of = put(with_group(config(), "rack1", networks={"net-1": {}}), "networks", NETWORK)
    [[op]] = jobs(of, "rack1", "default")
    assert isinstance(op, OpNetworkConnect)
    assert op.group_name == "default"


def test_another_network_of_the_group_does_not_count() -> None:
    other = base.replace(NETWORK, uuid="net-2", name="other")
    of = put(with_group(config(), "rack1", networks={"net-2": {}}), "networks", NETWORK, other)
    [[op]] = jobs(of, "rack1")
    assert op.group_name == "rack1"


def test_where_everything_is_connected_there_is_no_job() -> None:
    of = put(with_group(config(), "rack1", networks={"net-1": {}}), "networks", NETWORK)
    assert jobs(of, "rack1") == []
    assert jobs(of) == []
