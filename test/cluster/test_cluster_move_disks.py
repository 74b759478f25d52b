"""gnt-instance move: disks are copied to another node, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_cluster import Cluster
from test_cluster_moves import recorded, runs_on, script

WEB = "web1.example.com"
ADD = "instance add -n node2 -o noop -t file --disk 0:size=8M --disk 1:size=4M --no-nics"


@pytest.fixture
def web(cluster: Cluster) -> Iterator[list[Path]]:
    """A running instance on node2; gives its disks, which hold something."""
    cluster.ok(ADD, WEB)
    disks = [cluster.directory / path for path in cluster.disks()]
    for disk in disks:
        with disk.open("r+b") as stream:
            stream.seek(1 << 20)
            stream.write(os.urandom(1 << 20))
    yield disks
    for node in ("node2", "node3"):
        script(cluster, node)
    cluster.ok("instance remove -f", WEB)
    assert cluster.disks() == []


def contents(cluster: Cluster) -> dict[str, bytes]:
    return {
        path.partition("/")[2]: (cluster.directory / path).read_bytes() for path in cluster.disks()
    }


@pytest.mark.parametrize("compress", ["none", "gzip-fast"])
def test_disks_arrive_as_they_were(cluster: Cluster, web: list[Path], compress: str) -> None:
    before = contents(cluster)
    assert len(before) == 2
    out = cluster.ok(f"instance move -f -n node3 --compress {compress}", WEB).out
    assert " - disk/0: 8 MiB in " in out
    assert "7 MiB of zeros skipped" in out
    assert "copying disk/0 (8 MiB)" in out
    assert contents(cluster) == before
    assert all(path.startswith("node3/") for path in cluster.disks())
    assert (runs_on(cluster), recorded(cluster)) == (["node3"], "node3")
    sizes = [os.stat(cluster.directory / path).st_blocks * 512 for path in cluster.disks()]
    assert max(sizes) < 3 << 20, "holes were filled"
    assert cluster.ok("cluster verify").code == 0


def test_a_target_without_room(cluster: Cluster, web: list[Path]) -> None:
    script(cluster, "node3", node_info={"*": {"lie": {"memory_free": 1}}})
    ran = cluster.gnt("instance move -f -n node3", WEB)
    assert "not enough memory on node node3.example.com" in ran.err
    assert runs_on(cluster) == ["node2"]


def test_a_copy_that_fails_changes_nothing(cluster: Cluster, web: list[Path]) -> None:
    before = contents(cluster)
    ran = cluster.gnt("instance move -f -n node3 --compress lzop", WEB)
    assert ran.code == 1
    assert "choose from none, gzip, gzip-fast, gzip-slow" in ran.err
    assert contents(cluster) == before
    assert all(path.startswith("node2/") for path in cluster.disks())
    assert (runs_on(cluster), recorded(cluster)) == (["node2"], "node2")


def test_what_need_not_be_copied(cluster: Cluster) -> None:
    cluster.ok("instance add -n node2 -o noop -t sharedfile --disk 0:size=8M --no-nics", WEB)
    ran = cluster.gnt("instance move -f -n node3", WEB)
    assert ran.code == 1
    assert "need not be copied; use gnt-instance migrate or failover" in ran.err
    cluster.ok("instance remove -f", WEB)
