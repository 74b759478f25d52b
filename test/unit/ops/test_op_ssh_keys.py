"""Whose keys of SSH are let in, whatever was interrupted before."""

from __future__ import annotations

import pytest
from op_samples import config, node

from ganeti import errors
from ganeti.net import ssh_files
from ganeti.ops.planning import ssh_keys
from ganeti.ops.verification import ssh

OLD, NEW, OTHER, GONE = (f"ssh-rsa AAAA{letter} root@x" for letter in "OKTG")


def test_a_renewal_that_was_interrupted_ends_with_the_key_that_is_in_use() -> None:
    one = config(node(2, master_candidate=True))
    stored = {"node-2": [OLD, NEW]}
    for in_use, left in ((OLD, NEW), (NEW, OLD)):
        plan = ssh_keys.decide(one, stored, {"node-2": (in_use, [])})
        assert (plan.public, plan.allowed, plan.refused) == ({"node-2": [in_use]}, [in_use], [left])
        assert plan.list_all() == {"node-2": [in_use], ssh_keys.GONE: [left]}
    # Nobody knows which one a silent node uses.
    assert ssh_keys.decide(one, stored, {}).allowed == [OLD, NEW]


def test_keys_of_other_nodes_and_of_nodes_that_left_are_refused() -> None:
    one = config(node(2, master_candidate=True), node(3))
    answers = {"node-2": (OLD, []), "node-3": (OTHER, [])}
    plan = ssh_keys.decide(one, {"node-9": [GONE], "node-2": [OLD]}, answers)
    assert (plan.allowed, plan.refused) == ([OLD], [GONE, OTHER])
    assert ssh.checks(one, plan.list_all(), clutter=False)["ssh-setup"] == [
        {"node2.example.com": OLD},
        {"node3.example.com": OTHER, "a node": GONE},
    ]


def test_known_hosts_has_each_key_for_the_cluster_and_for_its_node() -> None:
    one = config(
        node(2, secondary_ip="198.51.100.2"), node(3, ndparams={"ssh_port": 2222}), node(4)
    )
    old = ["node4.example.com,192.0.2.4 ssh-rsa FOUR", "node9.example.com ssh-rsa NINE"]
    answers = {"node-2": (OLD, ["ssh-rsa TWO"]), "node-3": (OLD, ["ssh-rsa TWO"])}
    assert ssh_keys.known_hosts(one, old, answers) == [
        "cluster.example.com ssh-rsa TWO",
        "cluster.example.com ssh-rsa FOUR",
        "node2.example.com,192.0.2.2,198.51.100.2 ssh-rsa TWO",
        "[node3.example.com]:2222,[192.0.2.3]:2222 ssh-rsa TWO",
        "node4.example.com,192.0.2.4 ssh-rsa FOUR",
    ]


@pytest.mark.parametrize(("kind", "bits"), [("rsa", 1024), ("dsa", 2048), ("ecdsa", 255)])
def test_lengths_that_openssh_refuses_are_refused(kind: str, bits: int) -> None:
    with pytest.raises(errors.OpPrereqError, match=f"SSH keys of type {kind} have .* bits, not"):
        ssh_files.choose_length(kind, bits)
    assert ssh_files.choose_length(kind, None) == ssh_files.choose_length(
        kind, {"rsa": 2048, "dsa": 1024, "ecdsa": 256}[kind]
    )
