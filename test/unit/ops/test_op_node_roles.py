"""What wishes about the role of a node come to."""

from __future__ import annotations

from typing import Any

import pytest
from op_samples import config, node, with_instance

from ganeti import errors
from ganeti.model.config import Config
from ganeti.opcodes.node import OpNodeSetParams
from ganeti.ops.planning import node_roles
from ganeti.ops.steps.nodes import secondary_ip

C: dict[str, Any] = {"master_candidate": True}


def decide(of: Config, number: int, **wish: Any) -> node_roles.Decision:
    name = f"node{number}.example.com"
    return node_roles.decide(of, of.node(name), OpNodeSetParams(node_name=name, **wish))


def flags(decision: node_roles.Decision) -> str:
    return "".join(
        letter
        for letter, value in (
            ("C", decision.master_candidate),
            ("D", decision.drained),
            ("O", decision.offline),
        )
        if value
    )


@pytest.mark.parametrize(
    ("before", "wish", "after"),
    [
        ({}, {"drained": True}, "D"),
        ({"drained": True}, {"offline": True}, "O"),
        ({"offline": True}, {"drained": True}, "D"),
        ({"offline": True}, {"master_candidate": True}, "C"),
        ({"drained": True}, {"offline": False}, "D"),
        ({"drained": True, "master_capable": False}, {"drained": False}, ""),
        ({"drained": True}, {"drained": False, "master_candidate": False}, ""),
        ({}, {"drained": False}, ""),
        ({}, {"vm_capable": False}, ""),
        # too few candidates: one that comes back becomes one
        ({"drained": True}, {"drained": False}, "C"),
        ({"offline": True}, {"offline": False}, "C"),
        ({"master_capable": False}, {"master_capable": True}, "C"),
    ],
)
def test_flags(before: dict[str, Any], wish: dict[str, Any], after: str) -> None:
    assert flags(decide(config(node(2, **before)), 2, **wish)) == after


def test_one_that_comes_back_to_a_full_pool_stays_regular() -> None:
    of = config(node(2, **C), node(3, drained=True), pool=2)
    assert flags(decide(of, 3, drained=False)) == ""


@pytest.mark.parametrize(
    "wish",
    [{"master_candidate": False}, {"drained": True}, {"offline": True}, {"master_capable": False}],
)
def test_the_master_stays_master(wish: dict[str, Any]) -> None:
    with pytest.raises(errors.OpPrereqError, match="master-failover"):
        decide(config(node(2)), 1, **wish, force=True, auto_promote=True)
    assert flags(decide(config(node(2)), 1, vm_capable=False, drained=False)) == "C"


def test_contradictions() -> None:
    with pytest.raises(errors.OpPrereqError, match="drained and offline"):
        decide(config(node(2)), 2, drained=True, offline=True)
    with pytest.raises(errors.OpPrereqError, match="master-capable"):
        decide(config(node(2, master_capable=False)), 2, master_candidate=True)
    with pytest.raises(errors.OpPrereqError, match="master-capable"):
        decide(config(node(2)), 2, master_candidate=True, master_capable=False)


class TestDemotion:
    of = config(node(2, **C), node(3), pool=2)

    @pytest.mark.parametrize(
        "wish",
        [
            {"master_candidate": False},
            {"offline": True},
            {"drained": True},
            {"master_capable": False},
        ],
    )
    def test_refused_when_another_could_take_over(self, wish: dict[str, Any]) -> None:
        with pytest.raises(errors.OpPrereqError) as caught:
            decide(self.of, 2, **wish)
        text = errors.text(caught.value)
        assert "--auto-promote" in text
        assert "node3.example.com" in text
        assert "--force" in text

    def test_auto_promote_names_the_successor(self) -> None:
        decision = decide(self.of, 2, offline=True, auto_promote=True)
        assert flags(decision) == "O"
        assert decision.instead == ("node-3",)

    def test_successors_must_be_locked(self) -> None:
        op = OpNodeSetParams(node_name="node2", offline=True, auto_promote=True)
        with pytest.raises(errors.OpPrereqError, match="try again"):
            node_roles.decide(self.of, self.of.node("node2"), op, among={"node-2"})

    def test_force_does_without(self) -> None:
        decision = decide(self.of, 2, drained=True, force=True)
        assert (flags(decision), decision.instead) == ("D", ())
        assert "fewer" in " ".join(decision.notes)

    def test_nobody_could_take_over(self) -> None:
        of = config(node(2, **C), node(3, drained=True), pool=5)
        assert flags(decide(of, 2, master_candidate=False)) == ""

    def test_more_candidates_than_wanted(self) -> None:
        of = config(node(2, **C), node(3, **C), pool=1)
        assert flags(decide(of, 2, master_candidate=False)) == ""


class TestSecondaryAddress:
    def refusal(self, of: Config, number: int, address: str, *, force: bool = False) -> str:
        chosen = of.node(f"node{number}.example.com")
        return secondary_ip.refusal(of, chosen, address, force=force) or ""

    def test_in_a_cluster_with_one_network(self) -> None:
        of = config(node(2))
        assert "not an IP address" in self.refusal(of, 2, "nonsense")
        assert "node1" in self.refusal(of, 2, "192.0.2.1")
        assert "cluster" in self.refusal(of, 2, "192.0.2.254")
        assert "begin with the master" in self.refusal(of, 2, "198.51.100.2", force=True)
        assert self.refusal(of, 2, "192.0.2.2") == ""
        assert self.refusal(of, 1, "198.51.100.1", force=True) == ""

    def test_mirrored_disks(self) -> None:
        of = config(node(2), node(3, secondary_ip="198.51.100.3"))
        first = of.master
        both = with_instance(of, "web1", "node-2", first.uuid)
        assert "web1" in self.refusal(both, 2, "192.0.2.2")
        plain = with_instance(of, "web1", "node-2")
        assert self.refusal(plain, 2, "192.0.2.2") == ""
