"""burnin on a local cluster: everything that its disks and hypervisor allow, and a table."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from local_cluster import Cluster, Ran
from storage_nodes import StorageNodes

pytestmark = pytest.mark.long

SIZES = ("--disk-size=8M", "--disk-growth=4M", "--mem-size=64M", "--no-nics")


def burnin(cluster: Cluster, *words: str) -> Ran:
    argv = [sys.executable, "-m", "ganeti.tools.burnin", *words]
    env = {**os.environ, **cluster.env()}
    ran = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert "Traceback" not in ran.stderr
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def steps(ran: Ran) -> dict[str, tuple[int, int]]:
    """Jobs and failures of each step in the table."""
    table = ran.out.partition("seconds\n")[2].splitlines()
    rows = [line.split() for line in table if line and line[0].islower()]
    return {row[0]: (int(row[1]), int(row[2])) for row in rows}


def test_mirrored_disks(storage_cluster: tuple[Cluster, StorageNodes]) -> None:
    cluster, _nodes = storage_cluster
    ran = burnin(cluster, "-o", "noop", "-t", "drbd", "-p", *SIZES, "b1", "b2")
    assert ran.code == 0, ran.out + ran.err
    wanted = (
        "create replace1 replace2 grow failover migrate importexport reinstall reboot"
        " activate-disks add-disks add-nics startstop remove"
    )
    assert steps(ran) == dict.fromkeys(wanted.split(), (2, 0))
    assert "move is left out: failover does it" in ran.out
    assert ran.lines[-1] == "Everything worked"
    assert cluster.cells("instance list -o name") == []
    assert [row for row in cluster.cells("backup list") if row[1] != "?"] == []
    assert (cluster.paths().log / "burnin.log").read_text().endswith("Everything worked\n")


def test_files_that_move_and_names_that_change(cluster: Cluster) -> None:
    words = ("-o", "noop", "-t", "file", "--rename=other.example.com", "--maxmem-size=128M")
    ran = burnin(
        cluster, *words, "--minmem-size=64M", "--disk-size=8M,12M", "--disk-growth=4M,0", "b1"
    )
    assert ran.code == 0, ran.out + ran.err
    found = steps(ran)
    assert {"memory", "move", "importexport", "rename", "grow"} <= found.keys()
    assert not {"failover", "migrate", "replace1"} & found.keys()
    assert "failover is left out: disks of template file stay on a node" in ran.out
    assert "memory: done" in ran.out
    assert cluster.cells("instance list -o name") == []


def test_a_step_that_fails_ends_the_test_and_instances_are_removed(cluster: Cluster) -> None:
    for words, more in (((), False), (("--ignore-errors",), True)):
        ran = burnin(cluster, "-o", "noop", "-t", "file", *SIZES, *words, "--rename=no name", "b1")
        assert ran.code == 1
        assert steps(ran)["rename"][1] == 1
        assert ("activate-disks" in steps(ran)) is more
        assert "FAILED: b1: job" in ran.out
        assert cluster.cells("instance list -o name") == []


def test_an_interruption_removes_what_was_added(cluster: Cluster) -> None:
    argv = [sys.executable, "-m", "ganeti.tools.burnin", "-o", "noop", "-t", "file", *SIZES, "b1"]
    env = {**os.environ, **cluster.env()}
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        for line in program.stdout:
            if line.startswith("create: done"):
                program.send_signal(signal.SIGTERM)
                break
        rest = program.stdout.read()
    assert program.returncode == 1
    assert "Stopping after the jobs that run now." in rest
    assert "interrupted" in rest
    assert "remove: done" in rest
    assert cluster.cells("instance list -o name") == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("-t", "drbd", "b1"), "drbd is not enabled; there are: "),
        (("-H", "xen-pvm", "b1"), "xen-pvm is not enabled"),
        (("-n", "node9", "b1"), "node9"),
        (("b1", "b1"), "named twice"),
        (("--disk-size=much", "b1"), "much"),
        (("--disk-size=1G", "--disk-growth=1G,1G", "b1"), "as many sizes"),
    ],
)
def test_what_cannot_be_is_refused(cluster: Cluster, words: tuple[str, ...], text: str) -> None:
    ran = burnin(cluster, "-o", "noop", *words)
    assert (ran.code, text in ran.err) == (1, True), ran.err


def test_instances_that_exist_are_never_touched(cluster: Cluster) -> None:
    assert cluster.add("web.example.com").code == 0
    ran = burnin(cluster, "-o", "noop", "web.example.com")
    assert ran.code == 1
    assert "there are such instances already: web.example.com" in ran.err
    assert cluster.cells("instance list -o name,status") == [["web.example.com", "running"]]
    cluster.ok("instance remove -f web.example.com")
