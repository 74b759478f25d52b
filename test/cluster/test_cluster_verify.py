"""gnt-cluster verify and verify-disks as a person and a script see them."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_cluster import Cluster, copy_cluster, tool

WEB = "web.example.com"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with copy_cluster(3) as made:
        assert made.add(WEB).code == 0
        yield made


def on_terminal(cluster: Cluster, *words: str) -> str:
    """What gnt-cluster writes to a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        cluster.argv("gnt-cluster", *words),
        env=cluster.env(),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ) as running:
        os.close(theirs)
        said = bytearray()
        while chunk := _read(ours):
            said += chunk
        running.wait(60)
    os.close(ours)
    return said.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""


def test_scripts_see_headings_and_nothing_on_stderr(cluster: Cluster) -> None:
    ran = cluster.ok("cluster verify")
    for heading in ("cluster config", "node status", "instance status", "disks"):
        assert f"* Verifying {heading}" in ran.out
    assert ran.err == ""
    assert "cluster-verify" not in ran.out


def test_a_disk_that_a_job_is_changing_is_not_missing(cluster: Cluster) -> None:
    """To make it again, as verify says of a missing one, would destroy what the job makes."""
    [path] = cluster.root("node2").glob(f"**/{WEB}/*.disk0")
    aside = path.with_name("aside")
    hook = cluster.paths().hooks / "instance-modify-pre.d" / "wait"
    begun, go = cluster.directory / "begun", cluster.directory / "go"
    os.mkfifo(begun)
    os.mkfifo(go)
    hook.parent.mkdir(parents=True)
    hook.write_text(f"#!/bin/sh\necho > {begun}\nread answer < {go}\n")
    hook.chmod(0o755)
    cluster.ok("instance modify --submit -B vcpus=2", WEB)
    job = cluster.cells("job list -o id")[-1][0]
    begun.read_text()
    os.rename(path, aside)
    during = cluster.gnt("cluster verify")
    os.rename(aside, path)
    go.write_text("\n")
    cluster.ok("job watch", job)
    hook.unlink()
    assert "is missing" not in during.out


def test_a_terminal_sees_only_what_is_wrong(cluster: Cluster) -> None:
    said = on_terminal(cluster, "verify")
    assert "* Verifying" not in said
    assert said.rstrip().endswith("cluster-verify: 0 errors, 0 warnings")
    assert "* Verifying node status" in on_terminal(cluster, "verify", "--verbose")
    data = cluster.paths("node2").data
    mode = data.stat().st_mode
    data.chmod(0o777)
    try:
        said = on_terminal(cluster, "verify")
    finally:
        data.chmod(mode)
    lines = [line.strip() for line in said.splitlines() if "everybody" in line or "* " in line]
    heading, finding = lines
    assert heading.endswith("* Verifying node status")
    assert "  - ERROR: node node2.example.com: everybody may write to" in finding
    assert said.rstrip().endswith("cluster-verify: 1 error, 0 warnings")


def test_what_the_master_sent_must_be_there(cluster: Cluster) -> None:
    tags = cluster.paths("node2").ssconf("cluster_tags")
    tags.chmod(0o644)
    tags.write_text("edited\n")
    cluster.paths("node2").ssconf("instance_list").unlink()
    ran = cluster.gnt("cluster verify --error-codes")
    assert ran.code == 1
    [line] = [line for line in ran.lines if "ERROR" in line]
    assert line.endswith(
        "  - ERROR:ECLUSTERFILECHECK:cluster:cluster.example.com:2 files of node node2.example.com"
        " differ from what the master sent: ssconf_cluster_tags, ssconf_instance_list; gnt-cluster"
        " redist-conf sends them again"
    )
    assert ran.err.splitlines()[-1] == "cluster-verify: 1 error, 0 warnings"
    ignored = cluster.ok("cluster verify --ignore-errors ECLUSTERFILECHECK")
    assert ignored.err.splitlines()[-1] == "cluster-verify: 0 errors, 1 warning"
    cluster.ok("cluster redist-conf")
    cluster.ok("cluster verify")


def test_other_file_of_a_node(cluster: Cluster) -> None:
    secret = cluster.paths("node3").domain_secret
    secret.chmod(0o600)
    secret.write_text("other\n")
    ran = cluster.gnt("cluster verify")
    assert (
        "  - ERROR: cluster cluster.example.com: file /var/lib/ganeti/cluster-domain-secret of"
        " node3.example.com differs from that of the master;" in ran.out
    )
    cluster.ok("cluster redist-conf")
    cluster.ok("cluster verify")


def test_changes_meanwhile_are_no_finding(cluster: Cluster) -> None:
    """Tags go into an ssconf file; while they change, each node has the old or the new ones."""
    words = cluster.argv("gnt-cluster", "add-tags")
    with_tags = [
        subprocess.Popen([*words, f"tag{number}"], env=cluster.env(), stdin=subprocess.DEVNULL)
        for number in range(6)
    ]
    try:
        cluster.ok("cluster verify")
    finally:
        assert [process.wait(60) for process in with_tags] == [0] * 6


def test_verify_disks_calls_a_file_no_volume(cluster: Cluster) -> None:
    [file] = cluster.disks()
    path = cluster.directory / file
    cluster.ok("instance activate-disks", WEB)
    aside = path.rename(path.with_suffix(".aside"))
    ran = cluster.gnt("cluster verify-disks")
    aside.rename(path)
    assert ran.code == 1
    assert f"Instance '{WEB}' has missing disks:" in ran.lines
    common = "/" + str(Path(file).relative_to("node2"))
    assert f"  node node2.example.com, path {common}" in ran.lines
    assert "gnt-instance recreate-disks makes the disks again" in ran.err
    assert "volume" not in ran.out + ran.err


def test_a_dead_node_is_one_finding(cluster: Cluster) -> None:
    """The last test: the node stays dead."""
    tool("kill-node", cluster.directory, "node2")
    ran = cluster.gnt("cluster verify")
    assert ran.code == 1
    [line] = [line for line in ran.lines if "ERROR" in line]
    assert "  - ERROR: node node2.example.com: no answer: " in line
    assert line.endswith("; the state of its 1 instance is not known")
    assert ran.err.splitlines()[-1] == "cluster-verify: 1 error, 0 warnings"
