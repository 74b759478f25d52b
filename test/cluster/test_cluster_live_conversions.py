"""Disks of a real guest are converted while it writes, and things are killed on the way.

``make check-moves MOVES=100`` makes so many conversions with cuts at random moments.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_cluster import copy_cluster
from needs import needs_programs
from test_cluster_live_moves import MOVES, NAME, SEED, Writer
from waiting import wait_for

from ganeti.hypervisor.kvm.qmp import Qmp

pytestmark = [
    pytest.mark.qemu,
    pytest.mark.long(90),
    needs_programs("qemu-system-x86_64"),
]

#: Templates, and where their disks are.
PLACES = {"file": "srv/ganeti/file-storage", "sharedfile": "srv/ganeti/shared-file-storage"}
VICTIMS = ("master", "source daemon", "source qemu", "job", "master and source qemu")


class Converted(Writer):
    """Its disks are of one of two templates."""

    @property
    def template(self) -> str:
        return str(self.cluster.cells("instance list -o disk_template", NAME)[0][0])

    @property
    def other(self) -> str:
        [found] = [template for template in PLACES if template != self.template]
        return found

    def disks(self, node: str) -> list[Path]:
        """All files that its disks may be in; what all nodes see is counted for the first."""
        places = [PLACES["file"], *([PLACES["sharedfile"]] if node == "node1" else [])]
        roots = [self.cluster.root(node) / place for place in places]
        return sorted(path for root in roots for path in root.glob(f"{NAME}/*"))

    def remove_leftovers(self) -> None:
        """New disks of a job that was cut, or old ones, which ``gnt-cluster verify`` names."""
        used = {path for path in self.disks("node1") if PLACES[self.template] in str(path)}
        left = set(self.disks("node1")) - used
        reported = self.cluster.gnt("cluster verify").out
        for path in left:
            assert path.name in reported, reported
            path.unlink()

    def list_used(self) -> list[str]:
        """Files that QEMU has open."""
        with Qmp.connect(self.cluster.paths("node1").kvm / "ctrl" / f"{NAME}.qmp") as qmp:
            nodes = qmp.command("query-named-block-nodes", {"flat": True})
            assert qmp.command("query-jobs") == []
        return [node["file"] for node in nodes if node["drv"] == "raw"]

    def check(self) -> None:
        super().check()
        place = PLACES[self.template]
        files = self.list_used()
        assert len(files) == 2
        real = [str(Path(path).resolve()) for path in files]
        assert all(f"/{Path(place).name}/" in path for path in real), (place, real)

    def begin(self, *options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.cluster.argv("instance", "modify", "-t", self.other, *options, NAME),
            env=self.cluster.env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


@pytest.fixture(scope="module")
def writer() -> Iterator[Converted]:
    with copy_cluster(2, "kvm") as made:
        yield Converted(made)


def test_it_writes_on(writer: Converted) -> None:
    for _ in range(2):
        out = writer.cluster.ok("instance modify -t", writer.other, NAME, timeout=120).out
        assert "while the instance runs (40 MiB)" in out
        assert "The guest uses its new disks; it was paused for" in out
        writer.check()
    assert writer.serial("node1").count("guest is up") == 1
    assert writer.cluster.ok("cluster verify").code == 0


def test_it_grows_and_moves_after_it(writer: Converted) -> None:
    cluster = writer.cluster
    cluster.ok("instance modify -t sharedfile", NAME, timeout=120)
    cluster.ok("instance grow-disk", NAME, "1", "4M")
    cluster.ok("instance modify -t file", NAME, timeout=120)
    cluster.ok("instance move -f --live -n node2", NAME, timeout=120)
    writer.wait_for_numbers()
    cluster.ok("instance move -f --live -n node1", NAME, timeout=120)
    writer.check()
    assert cluster.ok("cluster verify").code == 0


def test_a_backup_after_it_reads_only_what_was_written(writer: Converted) -> None:
    cluster = writer.cluster
    cluster.ok("backup run", NAME)
    cluster.ok("instance modify -t", writer.other, NAME, timeout=120)
    writer.wait_for_numbers()
    cluster.ok("backup run", NAME)
    history = "backup history --no-headers --separator=: -o mode"
    assert [line.strip() for line in cluster.ok(history, NAME).lines] == ["full", "dirty"]


@pytest.mark.parametrize("victim", VICTIMS)
def test_something_is_killed_while_the_disks_are_copied(writer: Converted, victim: str) -> None:
    before = writer.template
    child = writer.begin("--bandwidth=4")
    wait_for(lambda: len(writer.disks("node1")) == 4, "the new disks", 60)
    time.sleep(1)  # they are copied then
    writer.kill(victim, "node1")
    out = writer.recover(child)
    assert child.returncode != 0, out
    assert writer.template == before
    writer.remove_leftovers()
    writer.check()
    assert writer.cluster.ok("cluster verify").code == 0


@pytest.fixture(scope="module")
def duration(writer: Converted) -> float:
    """Seconds that a conversion takes."""
    return writer.measure()


@pytest.mark.parametrize("number", range(MOVES))
def test_cuts_at_random_moments(writer: Converted, duration: float, number: int) -> None:
    chance = random.Random(f"{SEED} {number}")
    before, victim = writer.template, chance.choice(VICTIMS)
    child = writer.begin()
    moment = chance.random() * duration * 1.1
    time.sleep(moment)
    writer.kill(victim, "node1")
    writer.recover(child)
    end = "stayed" if writer.template == before else "converted"
    print(f"conversion {number}: {victim} at {moment:.2f} s of {duration:.2f} s: {end}")
    writer.remove_leftovers()
    writer.check()
    assert writer.cluster.ok("cluster verify").code == 0
