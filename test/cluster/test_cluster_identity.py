"""A node daemon is believed for its certificate, not for its address."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from local_cluster import Cluster, tool
from waiting import wait_for

from ganeti import constants
from ganeti.base import daemon, process

#: What must not get into the hands of a node that is not a candidate.
SECRETS = ("ca.key", "config.data", "config.journal", "rapi.pem", "rapi/users", "queue/serial")


@contextmanager
def impostor(cluster: Cluster, node: str, address_of: str) -> Iterator[Cluster]:
    """The daemon of a node, with what the node has, at the address of another one."""
    assert tool("kill-node", cluster.directory, address_of).code == 0
    short = f"{node}-elsewhere"
    root = cluster.root(short)
    shutil.copytree(cluster.root(node), root, symlinks=True)
    shutil.rmtree(root / "var" / "run")
    (root / "var" / "run").mkdir()
    where = cluster.paths(short)
    address = where.ssconf("node_primary_ips").read_text().split(f"{address_of}.example.com ")[1]
    env = {**cluster.env(short), "GANETI_HOSTNAME": f"{node}.example.com"}
    argv = [sys.executable, "-m", "ganeti.node.daemon", "-b", address.split()[0]]
    started = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
    try:
        assert started.returncode == 0, started.stderr
        yield cluster
    finally:
        pid = daemon.running_pid(where.pid_file(constants.NODED))
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            process.wait_exit(pid, 10)
        shutil.rmtree(root)
        assert tool("start-node", cluster.directory, address_of).code == 0


@pytest.fixture
def two_candidates(cluster: Cluster) -> Cluster:
    cluster.ok("cluster modify -C 2")
    data = cluster.paths("node3").data
    wait_for(lambda: not (data / "config.data").exists(), "node3 to forget the configuration")
    return cluster


def test_another_node_at_the_address_of_a_candidate_gets_nothing(two_candidates: Cluster) -> None:
    cluster = two_candidates
    both = "node3.example.com answers there, not node2.example.com"
    with impostor(cluster, "node3", "node2"):
        found = cluster.gnt("cluster verify --error-codes")
        assert found.code == 1
        [line] = [line for line in found.lines if "ENODERPC" in line]
        assert "node2.example.com" in line
        assert both in line
        assert both in cluster.ok("cluster redist-conf").out
        cluster.ok("cluster add-tags", "for-candidates-only")
        log = cluster.paths().log / "master-daemon.log"
        wait_for(lambda: both in log.read_text(), "the master to say why node2 has no copy")
        data = cluster.paths("node3-elsewhere").data
        assert [name for name in SECRETS if (data / name).exists()] == []
    cluster.ok("cluster verify")


def test_a_vote_counts_nobody_who_answers_for_another(cluster: Cluster) -> None:
    cluster.ok("cluster modify -C 3")
    with impostor(cluster, "node3", "node2"):
        assert tool("kill-node", cluster.directory, "node1").code == 0
        refused = cluster.gnt("cluster master-failover", node="node3")
        assert refused.code != 0
        assert "only 1 of 3 nodes answered" in refused.err
    assert tool("start-node", cluster.directory, "node1").code == 0
    cluster.ok("cluster verify")


def test_a_broken_certificate_is_found_and_made_again(cluster: Cluster) -> None:
    path = cluster.paths("node3").server_cert
    path.unlink()
    path.write_text("garbage")
    found = cluster.gnt("cluster verify --error-codes")
    assert found.code == 1
    [line] = [line for line in found.lines if "ERROR" in line]
    assert "ERROR:ECLUSTERCERT:cluster:" in line
    assert f":node node3.example.com: {path} holds no certificate" in line
    assert "gnt-node add --readd node3.example.com" in line
    cluster.ok("node add --readd --no-ssh-key-check", "node3.example.com")
    cluster.ok("cluster verify")
