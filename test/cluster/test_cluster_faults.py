"""Things go wrong in the middle: what was made is taken back, or reported."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_cluster import Cluster
from waiting import wait_for

from ganeti.luxi.client import Client

NAME = "victim.example.com"


def definitions(cluster: Cluster, name: str) -> list[Path]:
    """Directories of an OS definition on all nodes."""
    nodes = (full.partition(".")[0] for full in cluster.names)
    return [cluster.root(node) / "usr/local/lib/ganeti/os" / name for node in nodes]


def write_os(cluster: Cluster, name: str, create: str, *, mode: int = 0o755) -> None:
    """An OS definition on all nodes whose create script is this shell text."""
    for directory in definitions(cluster, name):
        directory.mkdir(parents=True)
        (directory / "ganeti_api_version").write_text("20\n")
        (directory / "variants.list").write_text("default\n")
        for script in ("create", "import", "export", "rename", "verify"):
            path = directory / script
            path.write_text(f"#!/bin/sh\n{create if script == 'create' else 'exit 0'}\n")
            path.chmod(mode if script == "create" else 0o755)
        (directory / "parameters.list").write_text("")


@pytest.fixture
def held_os(cluster: Cluster) -> Iterator[Path]:
    """An OS ``held`` whose create script says that it began and waits until a file appears."""
    gate = cluster.directory / "gate"
    gate.unlink(missing_ok=True)
    begun = cluster.directory / "begun"
    begun.unlink(missing_ok=True)
    if not definitions(cluster, "held")[0].exists():
        write_os(cluster, "held", f"touch {begun}; while [ ! -e {gate} ]; do sleep 0.05; done")
    yield gate
    gate.touch()


def begin(cluster: Cluster, name: str = NAME) -> subprocess.Popen[str]:
    """Begin to add an instance with the OS ``held``; returns when its script runs."""
    process = subprocess.Popen(
        cluster.argv(
            "instance",
            "add",
            "-n",
            "node2",
            "-o",
            "held+default",
            "-t",
            "file",
            "--disk",
            "0:size=8M",
            "--no-nics",
            name,
        ),
        env=cluster.env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for((cluster.directory / "begun").exists, "the create script to run")
    return process


def test_failing_create_script(cluster: Cluster) -> None:
    write_os(cluster, "broken", "echo cannot partition the disk; exit 3")
    before = cluster.disks()
    ran = cluster.gnt(
        "instance add -n node2 -o broken+default -t file --disk 0:size=8M --no-nics", NAME
    )
    assert ran.code == 1
    assert "cannot partition the disk" in ran.err
    assert cluster.disks() == before
    assert cluster.cells("instance list -o name") == []
    assert cluster.ok("cluster verify")


def test_create_script_that_cannot_be_run(cluster: Cluster) -> None:
    write_os(cluster, "unreadable", "exit 0", mode=0o644)
    ran = cluster.gnt(
        "instance add -n node2 -o unreadable+default -t file --disk 0:size=8M --no-nics", NAME
    )
    assert ran.code == 1
    assert "create" in ran.err
    assert "execut" in ran.err
    assert cluster.disks() == []
    verified = cluster.gnt("cluster verify").out
    assert "  - ERROR: node node2.example.com: OS unreadable in " in verified
    for directory in definitions(cluster, "unreadable"):
        shutil.rmtree(directory)


def test_hypervisor_that_fails(cluster: Cluster) -> None:
    script = cluster.paths("node2").conf / "fake-hypervisor.json"
    script.write_text(json.dumps({"start": {NAME: {"fail": "no more memory"}}}))
    try:
        ran = cluster.add(NAME)
    finally:
        script.unlink()
    assert ran.code == 1
    assert "no more memory" in ran.err
    assert "node2.example.com" in ran.err
    assert cluster.disks() == []
    assert cluster.cells("instance list -o name") == []


def test_name_is_taken_by_a_job_in_flight(cluster: Cluster, held_os: Path) -> None:
    first = begin(cluster)
    again = cluster.add(NAME)
    assert again.code == 1
    assert NAME in again.err
    held_os.touch()
    _out, err = first.communicate(timeout=30)
    assert first.returncode == 0, err
    cluster.ok("instance remove -f", NAME)


def test_master_dies_during_a_creation(cluster: Cluster, held_os: Path) -> None:
    adding = begin(cluster)
    number = cluster.cells("job list --running -o id")[0][0]
    cluster.kill_master()
    adding.kill()
    adding.communicate()
    assert cluster.start_master().code == 0
    held_os.touch()
    assert cluster.cells("job list -o status", number) == [["error"]]
    told = cluster.ok("job info", number).out
    assert "gnt-cluster verify" in told

    verify = cluster.gnt("cluster verify")
    assert verify.code == 1
    assert NAME in verify.out
    removed = cluster.gnt("instance remove -f", NAME)
    assert removed.code == 0, removed.err
    assert cluster.cells("instance list -o name") == []
    wait_for(lambda: not cluster.disks(), "the disks to be gone")
    assert cluster.ok("cluster verify")
    # and the name can be used again
    assert cluster.add(NAME).code == 0
    cluster.ok("instance remove -f", NAME)


def test_queued_jobs_survive_the_master(cluster: Cluster, held_os: Path) -> None:
    adding = begin(cluster)
    blocker = int(cluster.cells("job list --running -o id")[0][0])
    delay = {"OP_ID": "OP_TEST_DELAY", "duration": 0.001, "depends": [[blocker, []]]}
    with Client(cluster.paths().luxi_socket) as client:
        ids = [client.submit_job([delay]) for _ in range(3)]
    cluster.kill_master()
    adding.kill()
    adding.communicate()
    assert cluster.start_master().code == 0
    held_os.touch()
    for number in ids:
        cluster.ok("job wait", str(number))
    cluster.ok("instance remove -f", NAME)


def test_stop_waits_for_running_operations(cluster: Cluster) -> None:
    number = cluster.ok("debug delay --submit", "1").err.split()[-1]
    wait_for(lambda: cluster.cells("job list --running -o id") == [[number]], "the job to run")
    pid = cluster.pid("ganeti-masterd")
    assert pid
    subprocess.run(["kill", str(pid)], check=True)
    wait_for(lambda: cluster.pid("ganeti-masterd") is None, "the daemon to end")
    assert cluster.start_master().code == 0
    assert cluster.cells("job list -o status", number) == [["success"]]
