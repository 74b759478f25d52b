"""ganeti-doctor on nodes of a running cluster, and servers that cannot join it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from local_cluster import Cluster, copy_cluster

from ganeti import constants, paths
from ganeti.base import jsonio, process, services

#: Read by each Python that finds it in its path.
SHIFT = """\
import os, time
now = time.time
time.time = lambda: now() + float(os.environ.get("SECONDS_AHEAD", "0"))
"""


def doctor(cluster: Cluster, node: str, *words: str) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    """Exit code and findings by subject."""
    done = subprocess.run(
        [sys.executable, "-m", "ganeti.tools.doctor", "--format", "json", *words],
        env=cluster.env(node),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in jsonio.loads(done.stdout):
        found.setdefault(each["check"], []).append(each)
    return done.returncode, found


def texts(found: dict[str, list[dict[str, Any]]], level: str) -> list[str]:
    return [
        f"{key}: {each['text']}" for key in found for each in found[key] if each["level"] == level
    ]


def test_nodes_are_well_until_something_breaks(cluster: Cluster) -> None:
    code, found = doctor(cluster, "node1")
    assert (code, texts(found, "FAIL")) == (0, [])
    assert found["cluster"][0]["text"] == "this server is the master"
    assert found["nodes"][0]["text"] == "answers of node2.example.com, node3.example.com"
    assert found["clock"][0]["level"] == "OK"
    # What the cluster needs is in its configuration.
    cluster.ok("cluster modify", "--nic-parameters", "link=no-such-bridge")
    cluster.ok("cluster modify", "--enabled-hypervisors", "fake,lxc")
    code, found = doctor(cluster, "node2")
    assert code == 1
    assert "bridges: bridge no-such-bridge is missing" in texts(found, "FAIL")
    cluster.ok("cluster modify", "--enabled-hypervisors", "fake")
    assert doctor(cluster, "node2")[0] == 0
    pid = cluster.pid(constants.NODED, "node3")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    process.wait_exit(pid, 10)
    assert texts(doctor(cluster, "node3")[1], "FAIL") == ["daemons: ganeti-noded does not run"]
    code, found = doctor(cluster, "node1")
    assert code == 0
    (line,) = [line for line in texts(found, "WARN") if line.startswith("nodes: ")]
    assert line.startswith("nodes: the node daemon of node3.example.com does not answer")
    cluster.paths("node3").client_cert.unlink()
    assert texts(doctor(cluster, "node3")[1], "FAIL") == [
        f"cluster: files of a cluster are here, but {cluster.paths('node3').client_cert} is"
        " missing; setting this server up was interrupted"
    ]


@pytest.mark.parametrize(
    ("ahead", "words"), [(600, "is 10 minutes ahead"), (-300, "is 5 minutes behind")]
)
def test_the_clock_of_another_node_is_minutes_away(tmp_path: Path, ahead: int, words: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(SHIFT)
    with copy_cluster(2) as cluster:
        services.stop(constants.NODED, cluster.paths("node2"))
        env = cluster.env("node2")
        env["PYTHONPATH"] = f"{tmp_path}:{env['PYTHONPATH']}"
        env["SECONDS_AHEAD"] = str(ahead)
        argv = services.ALL[constants.NODED].argv(cluster.paths("node2"))
        subprocess.run(argv, env=env, check=True, timeout=60)
        code, found = doctor(cluster, "node1")
        assert code == 1
        (line,) = texts(found, "FAIL")
        assert line.startswith("clock: the clock of node2.example.com")
        assert words in line
        said = cluster.gnt("cluster verify").out
        assert "node2.example.com: its clock differs by" in said


def test_a_server_that_cannot_be_a_node_is_refused_before_it_is_changed(tmp_path: Path) -> None:
    with copy_cluster(2) as cluster:
        cluster.ok("node remove", "node2.example.com")
        services.stop(constants.NODED, cluster.paths("node2"))
        address = cluster.paths("node2").hosts.read_text().split("\n")[3].split()[0]
        with socket.create_server((address, constants.DEFAULT_PORTS[constants.NODED])):
            ran = cluster.gnt("node add", "--no-ssh-key-check", "node2.example.com")
        assert ran.code == constants.EXIT_NODESETUP_ERROR
        assert "port 1811 of ganeti-noded is held by" in ran.err
        assert f"(pid {os.getpid()})" in ran.err
        assert not cluster.paths("node2").server_cert.exists()
        cluster.ok("cluster modify", "--nic-parameters", "link=no-such-bridge")
        cluster.ok("cluster modify", "--enabled-hypervisors", "fake,lxc")
        ran = cluster.ok("node add", "--no-ssh-key-check", "node2.example.com")
        assert "Node node2.example.com: bridge no-such-bridge is missing: ip link add" in ran.err
        assert cluster.cells("node list -o name") == [["node1.example.com"], ["node2.example.com"]]


def test_a_cluster_is_not_made_where_it_could_not_work(tmp_path: Path) -> None:
    name = "node1.example.com"
    where = paths.Paths(tmp_path)
    where.conf.parent.mkdir()
    where.hosts.write_text(f"127.0.0.13 {name}\n127.0.0.14 cluster.example.com\n")
    with socket.create_server(("127.0.0.13", 0)) as server:
        where.services.write_text(f"ganeti-noded {server.getsockname()[1]}/tcp\n")
        words = ["gnt-cluster", "init", "--enabled-hypervisors", "fake", "cluster.example.com"]
        done = subprocess.run(
            [sys.executable, "-m", "ganeti.cli", *words],
            env={**os.environ, "GANETI_ROOTDIR": str(tmp_path), "GANETI_HOSTNAME": name},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1
    assert "of ganeti-noded is held by" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not where.data.exists()
