"""Nodes that come back without their data, or with a full disk."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_cluster import Cluster, copy_cluster
from needs import needs_root

from ganeti import constants
from ganeti.base import services

NODE = "node2.example.com"


def doctor(cluster: Cluster, node: str) -> list[str]:
    """Lines of failures."""
    done = subprocess.run(
        [sys.executable, "-m", "ganeti.tools.doctor", "--quiet"],
        env=cluster.env(node),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    found = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    assert done.returncode == (1 if found else 0)
    return found


def reinstall(cluster: Cluster, node: str) -> None:
    """A new system under the old name: programs are there, nothing of the cluster is."""
    where = cluster.paths(node)
    for name in reversed(services.ALL):
        services.stop(name, where)
    names = [where.data, where.run, where.log, where.under("/srv/ganeti/file-storage")]
    subprocess.run(["rm", "-rf", *map(str, names)], check=True)
    where.file_storage_paths.unlink(missing_ok=True)


def test_a_node_that_was_reinstalled_under_its_old_name(tmp_path: Path) -> None:
    with copy_cluster(3) as cluster:
        assert cluster.add("web.example.com", node="node2").code == 0
        reinstall(cluster, "node2")
        assert doctor(cluster, "node2") == []
        said = cluster.gnt("cluster verify")
        assert said.code == 1
        assert NODE in said.out
        refused = cluster.gnt("node add", "--no-ssh-key-check", NODE)
        assert refused.code == 1
        (line,) = refused.err.splitlines()
        assert "is in the cluster already (--readd adds it after it was set up again)" in line
        cluster.ok("node add --readd --no-ssh-key-check", NODE)
        assert doctor(cluster, "node2") == []
        # The cluster is whole again; what was on the disks of the node is named.
        lost = [line for line in cluster.gnt("cluster verify").out.splitlines() if "ERROR" in line]
        assert lost
        assert all("web.example.com" in line for line in lost)
        cluster.ok("instance shutdown", "web.example.com")
        cluster.ok("instance recreate-disks", "web.example.com")
        cluster.ok("instance startup", "web.example.com")
        assert cluster.gnt("cluster verify").code == 0


def test_a_reinstalled_node_that_answers_without_certificates_is_named(tmp_path: Path) -> None:
    """Its old disk is back, but the directory with the certificates is not."""
    with copy_cluster(2) as cluster:
        where = cluster.paths("node2")
        services.stop(constants.NODED, where)
        where.server_cert.unlink()
        (line,) = doctor(cluster, "node2")
        assert f"but {where.server_cert} is missing" in line
        assert "gnt-node add on the master" in line
        cluster.ok("node add --readd --no-ssh-key-check", NODE)
        assert doctor(cluster, "node2") == []
        assert cluster.gnt("cluster verify").code == 0


# a full disk


@contextlib.contextmanager
def small_disk(directory: Path) -> Iterator[None]:
    """A file system of 4 MiB in place of a directory, with its files, and then full."""
    libc = ctypes.CDLL(None, use_errno=True)
    kept = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    target = os.fsencode(directory)
    if libc.mount(b"small", target, b"tmpfs", 0, b"size=4m,mode=755"):
        pytest.skip("this user cannot mount")
    try:
        for path, content in kept.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        with contextlib.suppress(OSError), (directory / "filler").open("wb") as filler:
            while True:
                filler.write(b"x" * 4096)
                filler.flush()
        yield
    finally:
        libc.umount2(target, 2)  # MNT_DETACH


@pytest.mark.root
@needs_root("to mount a small disk")
def test_a_server_with_a_full_var_does_not_join(tmp_path: Path) -> None:
    with copy_cluster(2) as cluster:
        cluster.ok("node remove", NODE)
        where = cluster.paths("node2")
        for name in reversed(services.ALL):
            services.stop(name, where)
        with small_disk(where.data):
            (line,) = doctor(cluster, "node2")
            assert f"{where.data} is full: 0M free: make room there; du -x" in line
            refused = cluster.gnt("node add", "--no-ssh-key-check", NODE)
            assert refused.code == constants.EXIT_NODESETUP_ERROR
            (line,) = refused.err.splitlines()
            assert f"{where.data} is full: 0M free: make room there" in line
            (where.data / "filler").unlink()
            assert cluster.gnt("node add", "--no-ssh-key-check", NODE).code != 0  # still small
        cluster.ok("node add", "--no-ssh-key-check", NODE)
        assert cluster.gnt("cluster verify").code == 0


@pytest.mark.root
@needs_root("to mount a small disk")
def test_no_cluster_is_made_on_a_full_var(tmp_path: Path) -> None:
    where_hosts = tmp_path / "etc"
    where_hosts.mkdir()
    name = "node1.example.com"
    (where_hosts / "hosts").write_text(f"127.0.0.15 {name}\n127.0.0.16 cluster.example.com\n")
    data = tmp_path / "var/lib/ganeti"
    data.mkdir(parents=True)
    words = ["gnt-cluster", "init", "--enabled-hypervisors", "fake", "cluster.example.com"]
    with small_disk(data):
        done = subprocess.run(
            [sys.executable, "-m", "ganeti.cli", *words],
            env={**os.environ, "GANETI_ROOTDIR": str(tmp_path), "GANETI_HOSTNAME": name},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert [path.name for path in data.iterdir()] == ["filler"]
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"{data} is full: 0M free" in line
