"""Daemons are killed while a helper guest works: no guest is left that writes to a disk."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator

import pytest
from helper_sector import make_disk
from local_cluster import Cluster, copy_cluster
from needs import needs_programs, needs_root
from waiting import wait_for

from ganeti import constants
from ganeti.base import process

pytestmark = [
    needs_programs("qemu-system-x86_64", "qemu-img"),
    needs_root("to confine programs"),
]
NAME = "web1.example.com"


@pytest.fixture(scope="module")
def kvm() -> Iterator[Cluster]:
    with copy_cluster(2, "kvm") as made:
        path = made.paths("node2").os_search_path[1] / "strange"
        path.mkdir(parents=True)
        (path / "ganeti_api_version").write_text("15\n")
        (path / "create_untrusted").write_text("#!/bin/sh\n")
        (path / "create_untrusted").chmod(0o755)
        images = made.paths("node2").os_images
        images.mkdir(parents=True)
        (images / "slow.raw").write_bytes(make_disk(hangs=True, last="slow"))
        made.ok("cluster modify --install-image=/srv/ganeti/os-images/slow.raw")
        yield made


@pytest.fixture
def adding(kvm: Cluster) -> Iterator[subprocess.Popen[str]]:
    """A command whose helper guest works on node2."""
    words = ["-n", "node2", "-t", "file", "--disk", "0:size=8M", "-B", "memory=64M", "--no-nics"]
    argv = kvm.argv("instance", "add", *words, "--no-start", "-o", "strange", NAME)
    log = kvm.paths("node2").kvm_log / f"{NAME}-serial.log"
    log.unlink(missing_ok=True)
    with subprocess.Popen(argv, env=kvm.env(), stderr=subprocess.PIPE, text=True) as command:
        wait_for(lambda: log.exists() and "slow" in log.read_text(), "the helper guest works", 60)
        yield command
        command.kill()


def find_guest(cluster: Cluster) -> int | None:
    """The process of QEMU, as it names itself."""
    try:
        pid = int((cluster.paths("node2").kvm / "pid" / NAME).read_text())
        os.kill(pid, 0)
    except (FileNotFoundError, ProcessLookupError):
        return None
    return pid


def test_killed_node_daemon(kvm: Cluster, adding: subprocess.Popen[str]) -> None:
    pid, guest = kvm.pid(constants.NODED, "node2"), find_guest(kvm)
    assert pid is not None
    assert guest is not None
    os.kill(pid, signal.SIGKILL)
    process.wait_exit(pid, 10)
    assert find_guest(kvm) == guest
    assert kvm.start_daemon(constants.NODED, "node2").code == 0
    said = adding.communicate(timeout=120)[1]
    assert "the node daemon was restarted" in said
    assert find_guest(kvm) is None
    assert kvm.cells("instance list -o name") == []
    assert kvm.disks() == []


def test_killed_master(kvm: Cluster, adding: subprocess.Popen[str]) -> None:
    """The node ends the guest when no master has asked for it for five minutes."""
    kvm.kill_master()
    assert kvm.start_master().code == 0
    assert adding.wait(60) != 0
    wait_for(lambda: find_guest(kvm) is None, "the node ends the guest", 400)
    ran = kvm.gnt("cluster verify")
    assert re.search(rf"{NAME}.*interrupted|interrupted.*{NAME}", ran.out + ran.err), ran.out
    kvm.ok("instance remove -f", NAME)
    assert kvm.disks() == []
