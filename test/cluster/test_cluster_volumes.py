"""Instances on logical volumes: made, grown, changed, converted, and made again when lost."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_cluster import Cluster
from storage_nodes import StorageNodes
from waiting import wait_for

NAME = "db1.example.com"
Both = tuple[Cluster, StorageNodes]


@pytest.fixture(scope="module", autouse=True)
def db1(storage_cluster: Both) -> Iterator[None]:
    cluster, nodes = storage_cluster
    cluster.ok(
        "cluster modify --ipolicy-bounds-specs min:disk-size=1,nic-count=0/max:disk-size=1000000"
    )
    cluster.ok(
        "instance add -n node2 -o noop -t plain --disk 0:size=32M --no-nics --no-start", NAME
    )
    yield
    cluster.ok("instance remove -f", NAME)
    assert [nodes.volumes(f"node{n}") for n in (1, 2, 3)] == [{}, {}, {}]
    cluster.ok("cluster verify")


def content(path: Path, size: int) -> str:
    """Checksum of the first bytes of a disk."""
    with path.open("rb") as disk:
        return hashlib.sha256(disk.read(size)).hexdigest()


def the_volume(nodes: StorageNodes, node: str = "node2") -> str:
    [volume] = nodes.volumes(node)
    return volume


def test_grow(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    path = nodes.path("node2", the_volume(nodes))
    path.write_bytes(os.urandom(1 << 20))
    before = content(path, 1 << 20)
    cluster.ok("instance grow-disk", NAME, "0", "32M")
    assert nodes.volumes("node2") == {the_volume(nodes): 64}
    assert content(path, 1 << 20) == before


def test_growth_that_lvm_refuses(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    nodes.fail("lvextend", "  no such luck", node="node2", times=None)
    ran = cluster.gnt("instance grow-disk", NAME, "0", "32M")
    nodes.clear_rules()
    assert ran.code == 1
    assert "no such luck" in ran.err
    assert cluster.cells("instance list -o disk.sizes", NAME) == [["64"]]
    full = cluster.gnt("instance grow-disk", NAME, "0", "100G")
    assert "not enough space in xenvg on node node2" in full.err


def test_disks_of_a_chosen_group(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    nodes.add_group("node2", "fastvg", 64)
    cluster.ok("instance modify --disk add:size=16M,vg=fastvg", NAME)
    assert sorted(name.split("/")[0] for name in nodes.volumes("node2")) == ["fastvg", "xenvg"]
    cluster.ok("instance modify --disk 1:remove", NAME)
    refused = cluster.gnt("instance modify --disk add:size=128M,vg=fastvg", NAME)
    assert "not enough space in fastvg" in refused.err


def test_a_creation_that_fails_half_way_leaves_nothing(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    before = nodes.volumes("node3")
    nodes.fail("lvcreate", "  scripted", node="node3", match="disk1")
    ran = cluster.gnt(
        "instance add -n node3 -o noop -t plain --disk 0:size=4M --disk 1:size=4M --no-nics",
        "half.example.com",
    )
    nodes.clear_rules()
    assert ran.code == 1
    assert "disk/1 of half.example.com could not be made" in ran.err
    assert nodes.volumes("node3") == before
    assert cluster.cells("instance list -o name") == [[NAME]]


def test_convert_to_files_and_back(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    path = nodes.path("node2", the_volume(nodes))
    data = os.urandom(64 << 20)
    path.write_bytes(data)
    uuid = cluster.cells("instance list -o disk.uuids", NAME)
    ran = cluster.ok("instance modify -t file", NAME)
    assert "disk_template -> file" in ran.out
    assert nodes.volumes("node2") == {}
    [file] = cluster.disks()
    assert (cluster.directory / file).read_bytes() == data
    assert cluster.cells("instance list -o disk.uuids", NAME) == uuid
    cluster.ok("instance modify -t plain", NAME)
    assert cluster.disks() == []
    assert nodes.path("node2", the_volume(nodes)).read_bytes() == data
    cluster.ok("cluster verify")


def test_a_conversion_that_fails_changes_nothing(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    volume = the_volume(nodes)
    data = nodes.checksum("node2", *volume.split("/"))
    directory = cluster.paths("node2").under("/srv/ganeti/file-storage")
    for words, text in (
        ("-t diskless", "one of them has no disks"),
        ("-t plain", "already has disk template"),
        ("-t file -n node3", "needs no secondary node"),
    ):
        refused = cluster.gnt(f"instance modify {words}", NAME)
        assert refused.code == 1
        assert text in refused.err
    assert nodes.volumes("node2") == {volume: 64}
    assert nodes.checksum("node2", *volume.split("/")) == data
    assert not list(directory.rglob("*.disk0"))


class TestLostDisks:
    def test_data_that_is_there_is_not_touched(self, storage_cluster: Both) -> None:
        cluster, nodes = storage_cluster
        refused = cluster.gnt("instance recreate-disks", NAME)
        assert refused.code == 1
        assert "still has data on node node2" in refused.err
        assert the_volume(nodes)

    def test_made_again(self, storage_cluster: Both) -> None:
        cluster, nodes = storage_cluster
        volume = the_volume(nodes)
        nodes.run("node2", "lvremove", "--force", "--yes", volume)
        verified = cluster.gnt("cluster verify")
        assert verified.code == 1
        assert "is missing" in verified.out
        cluster.ok("instance recreate-disks --disk 0:size=16M", NAME)
        assert nodes.volumes("node2") == {volume: 16}
        assert cluster.cells("instance list -o disk.sizes", NAME) == [["16"]]

    @pytest.mark.parametrize(
        ("words", "text"),
        [
            ("--disk 3", "has no disk 3"),
            ("--disk 0:name=x", "name cannot be changed here"),
            ("-n node3:node1", "needs 1 different nodes, not 2"),
            ("-n nosuch", "'nosuch' is not known"),
        ],
    )
    def test_refused(self, storage_cluster: Both, words: str, text: str) -> None:
        cluster, _nodes = storage_cluster
        refused = cluster.gnt(f"instance recreate-disks {words}", NAME)
        assert refused.code == 1
        assert text in refused.err

    def test_on_another_node_when_the_old_one_is_gone(self, storage_cluster: Both) -> None:
        cluster, nodes = storage_cluster
        volume = the_volume(nodes)
        cluster.ok("node modify --offline=yes", "node2")
        try:
            cluster.ok("instance recreate-disks -n node3", NAME)
        finally:
            cluster.ok("node modify --offline=no", "node2")
        assert cluster.cells("instance list -o pnode", NAME) == [["node3.example.com"]]
        assert nodes.volumes("node3") == {volume: 16}
        nodes.run("node2", "lvremove", "--force", "--yes", volume)
        cluster.ok("cluster verify")


def test_recorded_sizes_are_corrected(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    nodes.run("node3", "lvextend", "--size", "+16m", the_volume(nodes, "node3"))
    ran = cluster.ok("cluster repair-disk-sizes", NAME)
    assert f"Disk 0 of {NAME}: size is 32 now" in ran.out
    assert cluster.cells("instance list -o disk.sizes", NAME) == [["32"]]
    assert cluster.ok("cluster repair-disk-sizes").out == ""


def test_a_node_that_dies_in_the_middle_leaves_what_verify_names(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    adding = subprocess.Popen(
        cluster.argv(
            "instance",
            "add",
            "-n",
            "node1",
            "-o",
            "noop",
            "-t",
            "plain",
            "--disk",
            "0:size=4M",
            "--disk",
            "1:size=4M",
            "--no-nics",
            "lost.example.com",
        ),
        env=cluster.env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: len(nodes.volumes("node1")) == 1, "the first volume")
    pid = cluster.pid("ganeti-noded", "node1")
    assert pid
    os.kill(pid, signal.SIGKILL)
    _out, err = adding.communicate(timeout=60)
    nodes.clear_rules()
    assert adding.returncode == 1
    assert "of lost.example.com could not be made: node node1.example.com" in err
    assert cluster.start_daemon("ganeti-noded").code == 0
    assert cluster.cells("instance list -o name") == [[NAME]]
    verified = cluster.gnt("cluster verify")
    assert verified.code == 1
    left = nodes.volumes("node1")
    assert left
    for volume in left:
        assert volume.split("/")[1] in verified.out
        nodes.run("node1", "lvremove", "--force", "--yes", volume)
    cluster.ok("cluster verify")


def test_spindles_that_are_reserved_are_not_free(storage_cluster: Both) -> None:
    """Where storage is exclusive a disk takes whole physical volumes; so does a reserved one."""
    cluster, _nodes = storage_cluster
    cluster.ok("cluster modify --node-parameters exclusive_storage=true")
    try:
        spindles = dict(cluster.cells("node list -o name,spfree"))
        node, free = next((name, text) for name, text in spindles.items() if text != "0")
        reserve = f"instance add --forthcoming -n {node} -t plain --no-nics --disk"
        cluster.ok(f"{reserve} 0:size=32M,spindles={free}", "kept.example.com")
        refused = cluster.gnt(f"{reserve} 0:size=32M,spindles=1", "late.example.com")
        assert refused.code == 1
        assert f"not enough spindles in xenvg on node {node}" in refused.err
        assert f"({free} less {free} that are reserved for kept.example.com)" in refused.err
        cluster.ok("instance remove -f kept.example.com")
    finally:
        cluster.ok("cluster modify --node-parameters exclusive_storage=false")
