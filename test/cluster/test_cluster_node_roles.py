"""Roles of nodes: candidates have the configuration, others do not, and there are enough."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator

import pytest
from local_cluster import Cluster, tool
from waiting import wait_for

from ganeti.net import hosts_file

CANDIDATE_FILES = ("ca.key", "config.data")


def roles(cluster: Cluster) -> str:
    return "".join(role for _name, role in cluster.cells("node list -o name,role"))


def list_candidate_files(cluster: Cluster, node: str) -> list[str]:
    """What a node has of what only candidates have."""
    return [name for name in CANDIDATE_FILES if (cluster.paths(node).data / name).exists()]


def count_certificates(cluster: Cluster, node: str) -> int:
    """How many certificates a node accepts."""
    return len(cluster.paths(node).ssconf("master_candidates_certs").read_text().split())


@pytest.fixture(autouse=True)
def all_candidates(cluster: Cluster) -> Iterator[None]:
    """Each test begins with three candidates."""
    yield
    cluster.ok("cluster modify -C 10")
    for node in ("node2", "node3"):
        cluster.ok("node modify --master-capable yes --vm-capable yes -D no -O no", node)
    cluster.ok("node modify -C yes", "node2")
    cluster.ok("node modify -C yes", "node3")
    assert roles(cluster) == "MCC"
    cluster.ok("cluster verify")


def test_demotion_and_promotion(cluster: Cluster) -> None:
    ran = cluster.ok("node modify -C no", "node2")
    assert "master_candidate -> False" in ran.out
    assert roles(cluster) == "MRC"
    wait_for(
        lambda: not list_candidate_files(cluster, "node2"), "node2 to forget the configuration"
    )
    assert {count_certificates(cluster, f"node{n}") for n in (1, 2, 3)} == {2}
    again = cluster.ok("node modify -C yes", "node2")
    assert "master_candidate -> True" in again.out
    wait_for(
        lambda: len(list_candidate_files(cluster, "node2")) == 2, "node2 to get the configuration"
    )
    assert {count_certificates(cluster, f"node{n}") for n in (1, 2, 3)} == {3}
    assert (cluster.paths("node2").ca_key.stat().st_mode & 0o777) == 0o400


def test_the_pool_follows_its_size(cluster: Cluster) -> None:
    cluster.ok("cluster modify -C 2")
    assert roles(cluster) == "MCR"
    wait_for(
        lambda: not list_candidate_files(cluster, "node3"), "node3 to forget the configuration"
    )
    cluster.ok("cluster modify -C 3")
    assert roles(cluster) == "MCC"
    wait_for(
        lambda: len(list_candidate_files(cluster, "node3")) == 2, "node3 to get the configuration"
    )


def test_the_last_candidates_are_not_given_up_unasked(cluster: Cluster) -> None:
    cluster.ok("cluster modify -C 2")
    refused = cluster.gnt("node modify -D yes", "node2")
    assert refused.code == 1
    assert "--auto-promote" in refused.err
    assert "node3.example.com" in refused.err
    assert roles(cluster) == "MCR"
    dry = cluster.ok("node modify -D yes --auto-promote --dry-run", "node2")
    assert "nothing was changed" in dry.out
    assert roles(cluster) == "MCR"
    cluster.ok("node modify -D yes --auto-promote", "node2")
    assert roles(cluster) == "MDC"
    cluster.ok("node modify -D no", "node2")
    assert roles(cluster) == "MRC"
    forced = cluster.ok("node modify -O yes --force", "node3")
    assert "fewer" in forced.out
    assert roles(cluster) == "MRO"


def test_the_master_is_protected(cluster: Cluster) -> None:
    for change in ("-C no", "-D yes", "-O yes", "--master-capable no"):
        ran = cluster.gnt(f"node modify --force {change}", "node1")
        assert ran.code == 1
        assert "master-failover" in ran.err
    assert roles(cluster) == "MCC"


def test_a_dead_node_is_set_offline_and_comes_back(cluster: Cluster) -> None:
    assert tool("kill-node", cluster.directory, "node3").code == 0
    try:
        cluster.ok("node modify -O yes", "node3")
        assert roles(cluster) == "MCO"
        # nobody calls it, so nothing waits and nothing is wrong
        cluster.ok("cluster verify")
        refused = cluster.gnt("node modify -O no", "node3")
        assert refused.code == 1
        assert "does not answer" in refused.err
        assert roles(cluster) == "MCO"
    finally:
        assert tool("start-node", cluster.directory, "node3").code == 0
    back = cluster.ok("node modify -O no", "node3")
    assert "online again as it was" in back.out
    assert roles(cluster) == "MCC"


def test_one_that_lost_its_role_while_away_is_told(cluster: Cluster) -> None:
    cluster.ok("node modify -O yes", "node3")
    assert list_candidate_files(cluster, "node3")
    cluster.ok("node modify -O no -C no", "node3")
    assert roles(cluster) == "MCR"
    wait_for(
        lambda: not list_candidate_files(cluster, "node3"), "node3 to forget the configuration"
    )


def test_not_master_capable(cluster: Cluster) -> None:
    cluster.ok("node modify --master-capable no", "node2")
    assert roles(cluster) == "MRC"
    assert cluster.gnt("node modify -C yes", "node2").code == 1
    cluster.ok("node modify --master-capable yes", "node2")
    assert roles(cluster) == "MCC"


def test_vm_capable(cluster: Cluster) -> None:
    assert cluster.add("web1.example.com", node="node2").code == 0
    try:
        ran = cluster.gnt("node modify --vm-capable no", "node2")
        assert ran.code == 1
        assert "web1.example.com" in ran.err
    finally:
        cluster.ok("instance remove -f", "web1.example.com")
    cluster.ok("node modify --vm-capable no", "node2")
    assert "not able" in cluster.add("web1.example.com", node="node2").err


def test_parameters(cluster: Cluster) -> None:
    cluster.ok("node modify --node-parameters spindle_count=7", "node2")
    assert cluster.cells("node list -o ndp/spindle_count", "node2") == [["7"]]
    cluster.ok("node modify --node-parameters spindle_count=default", "node2")
    assert cluster.cells("node list -o ndp/spindle_count", "node2") == [["1"]]
    for words, text in (
        ("--node-parameters exclusive_storage=true", "whole group"),
        ("--node-parameters colour=red", "colour"),
        ("--node-powered yes", "oob_program"),
        ("-s 127.1.2.3", "secondary address"),
        ("-s nonsense", "not an IP address"),
        ("-C yes -D yes", "at the same time"),
        ("", "Nothing to change"),
    ):
        ran = cluster.gnt(f"node modify {words}", "node2")
        assert ran.code == 1, words
        assert text in ran.err


def test_hooks(cluster: Cluster) -> None:
    said = cluster.directory / "said"
    hook = cluster.paths("node2").hooks / "node-modify-post.d" / "tell"
    hook.parent.mkdir(parents=True)
    hook.write_text(
        '#!/bin/sh\necho "$GANETI_OP_TARGET $GANETI_DRAINED $GANETI_OFFLINE'
        f' $GANETI_OBJECT_TYPE" >{said}\n'
    )
    hook.chmod(0o755)
    try:
        cluster.ok("node modify -D yes", "node2")
    finally:
        hook.unlink()
    assert said.read_text() == "node2.example.com True None NODE\n"


def test_a_node_that_leaves_is_replaced(cluster: Cluster) -> None:
    cluster.ok("cluster modify -C 2")
    assert roles(cluster) == "MCR"
    cluster.ok("node remove", "node2")
    assert roles(cluster) == "MC"
    wait_for(
        lambda: len(list_candidate_files(cluster, "node3")) == 2, "node3 to get the configuration"
    )
    cluster.ok("node add --no-ssh-key-check", "node2.example.com")
    assert roles(cluster) == "MRC"
    assert not list_candidate_files(cluster, "node2")
    # what every node needs has been sent
    assert cluster.paths("node2").hmac_key.exists()
    assert cluster.paths("node2").domain_secret.exists()


def test_restricted_commands(cluster: Cluster) -> None:
    off = cluster.gnt("node restricted-command status", "node2")
    assert off.code == 1
    assert "restricted commands are off on this node" in off.err
    for name in ("node2", "node3"):
        where = cluster.paths(name)
        where.restricted_commands.mkdir()
        program = where.restricted_commands / "status"
        program.write_text(f"#!/bin/sh\necho {name}; echo well\n")
        program.chmod(0o755)
    me = pwd.getpwuid(os.geteuid()).pw_name
    cluster.paths("node2").restricted_allow.write_text(f"status {me}\n")
    ran = cluster.gnt("node restricted-command -M --sync status", "node2", "node3")
    assert ran.code == 1
    assert ran.lines == ["node2.example.com: node2", "node2.example.com: well"]
    assert "node node3.example.com: " in ran.err
    assert cluster.ok("node restricted-command status", "node2").lines == ["node2", "well"]
    ran = cluster.gnt("node restricted-command ../status", "node2")
    assert "cannot be the name of a restricted command" in ran.err


def test_hosts_files_list_the_nodes_where_root_lets_them(cluster: Cluster) -> None:
    """``modify_etc_hosts``: the lines between the marks follow the nodes."""
    lines = {}
    for node in ("node1", "node2", "node3"):
        hosts = cluster.paths(node).hosts
        lines[node] = hosts.read_text()
        own = [line for line in lines[node].splitlines() if "node3.example.com" not in line]
        hosts.write_text("".join(f"{line}\n" for line in own))
    cluster.paths("node1").hosts_managed.touch()
    cluster.paths("node2").hosts_managed.touch()

    def marked(node: str) -> list[str]:
        rest = cluster.paths(node).hosts.read_text().partition(hosts_file.BEGIN)[2]
        return [line.split()[1] for line in rest.splitlines()[1:-1]]

    ran = cluster.ok("cluster modify --modify-etc-hosts=yes")
    assert "the hosts file of node3.example.com is not up to date" in ran.out + ran.err
    assert (marked("node1"), marked("node2")) == (["node3.example.com"],) * 2
    assert marked("node3") == []
    cluster.paths("node3").hosts_managed.touch()
    cluster.ok("cluster redist-conf")
    assert marked("node3") == ["node3.example.com"]
    # a damaged file is named, and the others are served
    damaged = cluster.paths("node2").hosts
    damaged.write_text(damaged.read_text() + f"{hosts_file.BEGIN}\n")
    ran = cluster.ok("cluster redist-conf")
    assert "node2.example.com is not up to date" in ran.out + ran.err
    assert "repair or remove them" in ran.out + ran.err
    damaged.write_text(lines["node2"])
    cluster.ok("node remove node3")
    assert marked("node1") == []
    assert not cluster.paths("node3").hosts_managed.exists()
    assert marked("node3") == []
    for node in ("node1", "node3"):
        cluster.paths(node).hosts.write_text(lines[node])
    cluster.ok("node add --no-ssh-key-check", "node3.example.com")
    assert cluster.paths("node3").hosts_managed.exists()
    cluster.ok("cluster modify --modify-etc-hosts=no")
