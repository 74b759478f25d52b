"""What a backup costs: bytes read of a disk with 1 % changed, and the latency of guest writes.

``make check-backup`` runs it; each figure is a line that begins with ``figure:``. ``BACKUP_GIB`` is
the size of the disk; 10 need ``PYTEST_DEBUG_TEMPROOT`` on a file system with that much room.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable, Iterator

import pytest
from local_cluster import Cluster, copy_cluster
from needs import needs_programs
from waiting import wait_for

from ganeti.hypervisor.kvm.qmp import Qmp

pytestmark = needs_programs("qemu-system-x86_64", "qemu-nbd")
NAME = "web1.example.com"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SIZE = int(os.environ.get("BACKUP_GIB") or 3) * GIB
CHUNK = 64 * KIB
#: MiB/s that the backup reads while the guest writes
SLOW = 5


def write(cluster: Cluster, offsets: Iterable[int], length: int) -> list[float]:
    """Write as the guest does, past its device; the seconds of each, with the way to QEMU.

    QEMU serves one connection at a time, so nobody else can talk to it meanwhile.
    """
    took = []
    with Qmp.connect(cluster.paths("node1").kvm / "ctrl" / f"{NAME}.qmp") as qmp:
        [device] = [each["qdev"] for each in qmp.command("query-block") if each.get("qdev")]
        for offset in offsets:
            line = f'qemu-io -d {device} "write -P {random.randrange(1, 256)} {offset} {length}"'
            begun = time.perf_counter()
            said = qmp.command("human-monitor-command", {"command-line": line})
            took.append(time.perf_counter() - begun)
            assert "rror" not in said, said
    return took


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with copy_cluster(2, "kvm") as made:
        made.ok(
            f"instance add -n node1 -o noop -t sharedfile --disk 0:size={SIZE // MIB}M --no-nics"
            " -B memory=32M -H kvm:boot_order=disk",
            NAME,
        )
        yield made


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


def test_figures_of_a_backup(cluster: Cluster) -> None:
    chance = random.Random(1)
    cluster.ok("backup run", NAME)
    places = [each * CHUNK for each in chance.sample(range(SIZE // CHUNK), SIZE // CHUNK // 100)]
    write(cluster, places, CHUNK)
    cluster.ok("backup run", NAME, timeout=300)
    line = cluster.ok(
        "backup history --no-headers --separator=: -o mode,read_bytes,stored_bytes", NAME
    ).lines[-1]
    mode, read, stored = line.split(":")
    changed = len(places) * CHUNK
    print(
        f"\nfigure: second backup of {SIZE // GIB} GiB with {changed / SIZE:.2%} changed:"
        f" {int(read)} bytes read ({int(read) / SIZE:.2%}), {int(stored)} stored"
    )
    assert mode == "dirty"
    assert int(read) <= 0.012 * SIZE

    def write_some(count: int) -> list[float]:
        offsets = [chance.choice(places) + chance.randrange(16) * 4 * KIB for _ in range(count)]
        return write(cluster, offsets, 4 * KIB)

    rest = write_some(5000)
    job = cluster.ok(
        f"backup run --full --bandwidth={SLOW} --submit --print-jobid", NAME
    ).out.split()[-1]
    wait_for_job(cluster, job)
    during: list[float] = []
    while not during or is_running(cluster, job):
        during += write_some(500)
    cluster.ok("job watch", job, timeout=300)
    for what, values in (("at rest", rest), (f"during a backup at {SLOW} MiB/s", during)):
        print(
            f"figure: guest writes of 4 KiB {what}: p50 {percentile(values, 0.5) * 1000:.3f} ms,"
            f" p99 {percentile(values, 0.99) * 1000:.3f} ms of {len(values)}"
        )
    print(f"figure: p99 during / at rest: {percentile(during, 0.99) / percentile(rest, 0.99):.2f}")


def is_running(cluster: Cluster, job: str) -> bool:
    return cluster.cells("job list --no-headers -o status", job) == [["running"]]


def wait_for_job(cluster: Cluster, job: str) -> None:
    """Wait until the disks are frozen, which is when QEMU has somewhere to keep old data."""
    work = cluster.paths("node1").backup_work / NAME
    wait_for(lambda: list(work.glob("*.sock")), "the backup to begin", 60)
    assert is_running(cluster, job)
