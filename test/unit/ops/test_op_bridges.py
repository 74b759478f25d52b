"""Bridges that instances need, in a cluster of one process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from one_process import OneProcess

from ganeti import errors
from ganeti.hypervisor.fake import FakeHypervisor
from ganeti.model.enums import DiskTemplate
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.cluster import OpClusterVerifyGroup
from ganeti.opcodes.devices import NicChange, NicParams
from ganeti.opcodes.enums import DdmFull, InstCreateMode, RebootType
from ganeti.opcodes.instance import (
    OpInstanceReboot,
    OpInstanceRemove,
    OpInstanceSetParams,
    OpInstanceShutdown,
    OpInstanceStartup,
)
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.opcodes.instance_move import OpInstanceFailover

WEB = "web.example.com"
NODE1 = "node1.example.com"


def create(*nics: NicParams) -> OpInstanceCreate:
    return OpInstanceCreate(
        instance_name=WEB,
        mode=InstCreateMode.CREATE,
        os_type="noop",
        disks=[],
        disk_template=DiskTemplate.DISKLESS,
        pnode="node1.example.com",
        nics=list(nics),
        beparams={"memory": 64},
        start=False,
    )


def modify(*changes: tuple[DdmFull, NicParams]) -> OpInstanceSetParams:
    return OpInstanceSetParams(
        instance_name=WEB, nics=[NicChange(what, -1, nic) for what, nic in changes]
    )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[OneProcess]:
    made = OneProcess(tmp_path / "cluster", count=2)
    yield made
    made.close()


BRIDGE = "gnt-no-such-br"


def join_bridges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the fake hypervisor need what real ones do; whether a node has it is really looked up."""
    traits = replace(FakeHypervisor.traits, joins_bridges=True)
    monkeypatch.setattr(FakeHypervisor, "traits", traits)


def check_refused(cluster: OneProcess, op: OpCode, node: str) -> None:
    with pytest.raises(errors.OpPrereqError) as caught:
        cluster.run(op)
    text, code = caught.value.args
    assert code == errors.ErrorCode.ENVIRON
    assert text == (
        f"1 bridge that instance {WEB} needs is missing on node {node}: {BRIDGE}; make it with: ip"
        f" link add name {BRIDGE} type bridge && ip link set {BRIDGE} up there, or change the link"
        " of the NIC"
    )


def test_a_missing_bridge_is_told_before_anything_is_done(
    cluster: OneProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = NicParams(mode="bridged", link=BRIDGE)
    cluster.run(create(card))  # the fake hypervisor joins no bridge
    cluster.run(OpInstanceStartup(instance_name=WEB))
    assert not any("bridge" in line for line in findings(cluster))
    join_bridges(monkeypatch)
    check_refused(cluster, OpInstanceReboot(instance_name=WEB, reboot_type=RebootType.HARD), NODE1)
    cluster.run(OpInstanceShutdown(instance_name=WEB))
    before = cluster.config
    check_refused(cluster, OpInstanceStartup(instance_name=WEB), NODE1)
    failover = OpInstanceFailover(instance_name=WEB, target_node="node2.example.com")
    check_refused(cluster, failover, "node2.example.com")
    assert cluster.config is before
    cluster.run(OpInstanceRemove(instance_name=WEB))
    check_refused(cluster, create(card), NODE1)
    cluster.run(create(NicParams(mode="routed", ip="192.0.2.7", link="main")))
    cluster.run(OpInstanceStartup(instance_name=WEB))


def test_only_the_bridges_of_changed_cards_are_needed_for_a_change(
    cluster: OneProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = NicParams(mode="bridged", link=BRIDGE)
    cluster.run(create(card))
    join_bridges(monkeypatch)
    check_refused(cluster, modify((DdmFull.ADD, card)), NODE1)
    cluster.run(modify((DdmFull.ADD, NicParams(mode="routed", ip="192.0.2.7"))))
    forced = modify((DdmFull.ADD, card))
    forced.force = True
    cluster.run(forced)
    assert len(cluster.instance(WEB).nics) == 3
    assert any(f"WARNING: 1 bridge that instance {WEB} needs" in line for line in cluster.log)


def test_verification_names_each_missing_bridge_once_for_a_node(
    cluster: OneProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = NicParams(mode="bridged", link=BRIDGE)
    cluster.run(create(card, card))
    join_bridges(monkeypatch)
    wanted = (
        f"bridge {BRIDGE} is missing, but {WEB} may run here; make it with: ip link add name"
        f" {BRIDGE} type bridge && ip link set {BRIDGE} up"
    )
    # without disks it may run on each node of the group
    assert [line for line in findings(cluster) if "bridge" in line] == [
        f"  - ERROR:ENODENET:node:{node}:{wanted}" for node in (NODE1, "node2.example.com")
    ]


def findings(cluster: OneProcess) -> list[str]:
    before = len(cluster.log)
    cluster.run(OpClusterVerifyGroup(group_name="default", error_codes=True))
    return [line for line in cluster.log[before:] if "ERROR" in line]
