"""Real guests move with their disks while they write, and things are killed on the way.

``make check-moves MOVES=100`` makes so many moves with cuts at random moments.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import writing_guest
from local_cluster import Cluster, copy_cluster, tool
from needs import needs_programs
from test_cluster_moves import kill_noded, list_unsettled
from waiting import wait_for

from ganeti import constants
from ganeti.base import process
from ganeti.hypervisor.kvm.qmp import Qmp

pytestmark = [
    pytest.mark.qemu,
    pytest.mark.long(90),
    needs_programs("qemu-system-x86_64"),
]

NAME = "writer.example.com"
NODES = ("node1", "node2")
#: Moves that are cut at random moments, and the seed of these.
MOVES = int(os.environ.get("MOVES") or 4)
SEED = int(os.environ.get("MOVES_SEED") or 1)
VICTIMS = (
    "master",
    "source daemon",
    "target daemon",
    "source qemu",
    "target qemu",
    "job",
    "master and target qemu",
    "both daemons",
)


class Writer:
    """An instance with two file disks whose guest writes all the time."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        cluster.ok(
            "instance add -n node1 -o noop -t file --disk 0:size=20M --disk 1:size=20M --no-nics"
            " --no-start -B memory=32M -H kvm:boot_order=disk",
            NAME,
        )
        for path in self.disks("node1"):
            writing_guest.install(path, rate=4, disks=2, full=True)
        cluster.ok("instance startup", NAME)

    # where it is

    @property
    def node(self) -> str:
        """Where it is on record."""
        return self.cluster.cells("instance list -o pnode", NAME)[0][0].partition(".")[0]

    def disks(self, node: str) -> list[Path]:
        return sorted((self.cluster.root(node) / "srv/ganeti/file-storage").glob(f"{NAME}/*"))

    def qemus(self) -> dict[str, int]:
        """Node -> process of the guest, whether it runs there or waits."""
        found = {}
        for node in NODES:
            path = self.cluster.paths(node).kvm / "pid" / NAME
            # QEMU makes the file before it writes its number.
            with contextlib.suppress(FileNotFoundError, ValueError):
                pid = int(path.read_text())
                if process.is_alive(pid):
                    found[node] = pid
        return found

    # what it has written

    def serial(self, node: str) -> str:
        path = self.cluster.paths(node).kvm_log / f"{NAME}-serial.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def read_numbers(self, node: str) -> list[int]:
        return writing_guest.list_numbers(self.serial(node))

    def wait_for_numbers(self) -> None:
        node = self.node
        before = len(self.read_numbers(node))
        wait_for(
            lambda: len(self.read_numbers(node)) > before + 10, f"the guest to write at {node}", 60
        )

    def check(self) -> None:
        """It runs on one node, with its disks there and nowhere else, and has lost nothing."""
        self.wait_for_numbers()
        node = self.node
        assert list(self.qemus()) == [node]
        with Qmp.connect(self.cluster.paths(node).kvm / "ctrl" / f"{NAME}.qmp") as qmp:
            qmp.command("stop")
            try:
                self._check_numbers(node)
            finally:
                qmp.command("cont")
        count = [len(self.disks(each)) for each in NODES]
        assert count == [2 if each == node else 0 for each in NODES]

    def _check_numbers(self, node: str) -> None:
        boots = sum(writing_guest.count_boots(self.serial(each)) for each in NODES)
        numbers = [number for each in NODES for number in self.read_numbers(each)]
        last = max(numbers)
        for path in self.disks(node):
            assert last <= writing_guest.check_disk(path) <= last + 1
        cut = sum(writing_guest.count_cut_lines(self.serial(each)) for each in NODES)
        assert last - cut <= len(set(numbers)) <= last, "numbers are missing"
        again = Counter(numbers).most_common(boots)
        assert len(numbers) - last < boots, f"it has run twice: {again}"

    # moving it

    def begin(self, *options: str) -> subprocess.Popen[str]:
        """A move that gets on slowly."""
        target = "node2" if self.node == "node1" else "node1"
        words = ("instance", "move", "-f", "--live", *options, "-n", target, NAME)
        return subprocess.Popen(
            self.cluster.argv(*words),
            env=self.cluster.env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def measure(self) -> float:
        """Seconds that it takes when nothing is killed."""
        start = time.monotonic()
        child = self.begin()
        out, _ = child.communicate(timeout=120)
        assert child.returncode == 0, out
        return time.monotonic() - start

    def kill(self, victim: str, source: str) -> None:
        """What is named does not exist any more, if it did."""
        target = "node2" if source == "node1" else "node1"
        sides = {"source": source, "target": target}
        if "master" in victim:
            self.cluster.kill_master()
        for side, node in sides.items():
            if f"{side} daemon" in victim or "both daemons" in victim:
                kill_noded(self.cluster, node)
            if f"{side} qemu" in victim and node in self.qemus():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.qemus()[node], signal.SIGKILL)
        if victim == "job":
            for row in self.cluster.cells("job list -o id,status"):
                if row[1] == "running":
                    self.cluster.gnt("job cancel --force", row[0])

    def recover(self, child: subprocess.Popen[str]) -> str:
        """Daemons run again, and the move is settled; what its command said."""
        if self.cluster.pid(constants.MASTERD) is None:
            child.kill()
            self.start_daemons()
            assert self.cluster.start_master().code == 0
        out, _ = child.communicate(timeout=120)
        self.start_daemons()
        self.cluster.ok("instance migrate -f --cleanup", NAME, timeout=120)
        if not self.qemus():
            self.cluster.ok("instance startup", NAME)
        assert list_unsettled(self.cluster) == [], out
        return str(out)

    def start_daemons(self) -> None:
        for node in NODES:
            if self.cluster.pid(constants.NODED, node) is None:
                assert tool("start-node", self.cluster.directory, node).code == 0


@pytest.fixture(scope="module")
def writer() -> Iterator[Writer]:
    with copy_cluster(2, "kvm") as made:
        yield Writer(made)


def test_it_writes_on(writer: Writer) -> None:
    writer.wait_for_numbers()
    out = writer.cluster.ok("instance move -f --live -n node2", NAME, timeout=120).out
    assert "* sending the disks of the running instance to node2.example.com" in out
    writer.check()
    writer.cluster.ok("instance migrate -f -n node1", NAME, timeout=120)
    writer.check()
    assert "".join(map(writer.serial, NODES)).count("guest is up") == 1
    assert writer.cluster.ok("cluster verify").code == 0


def test_a_backup_after_it_reads_only_what_was_written(writer: Writer) -> None:
    cluster = writer.cluster
    cluster.ok("backup run", NAME)
    cluster.ok("instance move -f --live -n node2", NAME, timeout=120)
    writer.wait_for_numbers()
    cluster.ok("backup run", NAME)
    history = "backup history --no-headers --separator=: -o mode"
    assert [line.strip() for line in cluster.ok(history, NAME).lines] == ["full", "dirty"]
    copy = "copy.example.com"
    cluster.ok("backup restore --no-start -n node1 --as", copy, NAME)
    restored = (cluster.root("node1") / "srv/ganeti/file-storage" / copy).iterdir()
    assert len({writing_guest.check_disk(path) for path in restored}) <= 2
    cluster.ok("instance remove -f", copy)
    cluster.ok("instance migrate -f -n node1", NAME, timeout=120)


@pytest.mark.parametrize("victim", VICTIMS)
def test_something_is_killed_while_the_disks_are_sent(writer: Writer, victim: str) -> None:
    source = writer.node
    child = writer.begin("--bandwidth=4")
    wait_for(lambda: len(writer.qemus()) == 2, "the target to wait", 60)
    time.sleep(1)  # the disks are on their way then
    writer.kill(victim, source)
    out = writer.recover(child)
    assert child.returncode != 0, out
    assert writer.node == source
    writer.check()
    assert writer.cluster.ok("cluster verify").code == 0


@pytest.fixture(scope="module")
def duration(writer: Writer) -> float:
    """Seconds that a move takes."""
    return writer.measure()


@pytest.mark.parametrize("number", range(MOVES))
def test_cuts_at_random_moments(writer: Writer, duration: float, number: int) -> None:
    chance = random.Random(f"{SEED} {number}")
    source, victim = writer.node, chance.choice(VICTIMS)
    child = writer.begin()
    moment = chance.random() * duration * 1.1
    time.sleep(moment)
    writer.kill(victim, source)
    writer.recover(child)
    end = "stayed" if writer.node == source else "moved"
    print(f"move {number}: {victim} at {moment:.2f} s of {duration:.2f} s: {end}")
    writer.check()
    assert writer.cluster.ok("cluster verify").code == 0
