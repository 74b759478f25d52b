"""Copies of backups that are started: the proof, what is refused, and that nothing stays."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from archive_bench import describe
from backup_copies import find_left
from fake_agent import agent
from helper_sector import make_disk
from local_cluster import Cluster, copy_cluster, tool
from needs import needs_programs, needs_root
from rapi_server import Api
from test_cluster_moves import kill_noded
from waiting import wait_for

pytestmark = [
    pytest.mark.qemu,
    needs_programs("qemu-system-x86_64", "qemu-nbd"),
]
NAME = "web1.example.com"
VERIFY = "backup verify --boot --boot-node=node2"
PROMPT = "web1 login:"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with copy_cluster(2, "kvm") as made:
        made.ok(
            "instance add -n node1 -o noop -t sharedfile --disk 0:size=2M --disk 1:size=1M"
            " --disk 2:size=1M --net 0:mode=ext,link=qemu-user -B memory=32M"
            " -H kvm:boot_order=disk --no-start",
            NAME,
        )
        fill(made, make_disk(first=PROMPT, copies=False, hangs=True))
        yield made


def disks(cluster: Cluster) -> list[Path]:
    """The disks of the instance in their order."""
    place = cluster.paths("node1").shared_file_storage / NAME
    return sorted(place.iterdir(), key=lambda path: path.name[-1])


def fill(cluster: Cluster, content: bytes, *, backup: bool = True) -> None:
    """Put a guest on the first disk, and back it up."""
    with disks(cluster)[0].open("r+b") as stream:
        stream.write(content)
    if backup:
        cluster.ok("backup run", NAME)


def proof(cluster: Cluster) -> str:
    return cluster.ok("backup history --no-headers -o proof", NAME).lines[-1].strip()


def begin(cluster: Cluster, *options: str) -> str:
    """The job of a verification whose copy runs."""
    ran = cluster.ok(f"{VERIFY} --submit --print-jobid", *options, NAME)
    work = cluster.paths("node2").backup_work
    console = work / f"{NAME}@read/guest/log/{NAME}-serial.log"
    wait_for(lambda: console.exists() and PROMPT in console.read_text(), "the copy to run", 60)
    return ran.out.strip().split()[-1]


def test_a_copy_boots_and_that_is_recorded(cluster: Cluster) -> None:
    before = [path.read_bytes() for path in disks(cluster)]
    ran = cluster.ok(f"{VERIFY} --boot-until=serial:login:", NAME)
    assert "on node node2" in ran.out
    assert "it has booted: the serial console shows 'login:' after" in ran.out
    assert proof(cluster) == "boot"
    [[last, booted]] = cluster.cells(
        "instance list --no-headers -o backup.verified,backup.booted", NAME
    )
    assert last == booted
    [backup] = Api(cluster).get(f"/2/instances/{NAME}/backups", Authorization="reader")
    assert backup["booted"] == backup["proof_time"]
    assert [path.read_bytes() for path in disks(cluster)] == before
    assert find_left(cluster, "node2") == []
    # a later look at the checksums takes nothing of that back
    cluster.ok("backup verify", NAME)
    [backup] = Api(cluster).get(f"/2/instances/{NAME}/backups", Authorization="reader")
    assert backup["proof"] == "checksum"
    assert backup["booted"] < backup["proof_time"]


def test_without_a_node_one_with_memory_to_spare_is_chosen(cluster: Cluster) -> None:
    ran = cluster.ok("backup verify --boot", NAME)
    assert "Selected nodes for instance copy of" in ran.out
    assert [find_left(cluster, node) for node in ("node1", "node2")] == [[], []]


def test_the_copy_of_a_running_instance_is_apart_from_it(cluster: Cluster) -> None:
    """The guest of the copy writes to its third disk; the disk of the instance stays empty."""
    disks(cluster)[1].write_bytes(b"\x55" * 512 + bytes(2**20 - 512))
    fill(cluster, make_disk(first=PROMPT, last="written", copies=True, hangs=True))
    fill(cluster, make_disk(first="original", copies=False, hangs=True), backup=False)
    cluster.ok("instance startup", NAME)
    ran = cluster.ok("backup verify --boot --boot-node=node1 --boot-until=serial:writ*n", NAME)
    assert "shows 'writ*n' after" in ran.out
    assert not any(disks(cluster)[2].read_bytes())
    assert cluster.cells("instance list --no-headers -o status", NAME) == [["running"]]
    assert find_left(cluster, "node1") == []
    cluster.ok("instance shutdown --timeout=0", NAME)
    fill(cluster, make_disk(first=PROMPT, copies=False, hangs=True))


def test_a_copy_that_shows_nothing_is_bad_but_its_content_is_built_on(cluster: Cluster) -> None:
    ran = cluster.gnt(f"{VERIFY} --boot-until=serial:Welcome --boot-timeout=2", NAME)
    assert ran.code == 1
    assert "the copy did not boot: not within 2 s: the serial console shows 'Welcome'" in ran.err
    assert PROMPT in ran.err
    assert proof(cluster).startswith("bad: the copy did not boot")
    assert find_left(cluster, "node2") == []
    [log] = cluster.paths("node2").os_log.glob(f"verify-*{NAME}*.log")
    assert PROMPT in log.read_text()
    cluster.ok("backup run", NAME)
    [*_, mode] = cluster.cells("backup history --no-headers -o mode", NAME)
    assert mode == ["compare"]


def test_a_copy_that_ends_is_bad(cluster: Cluster) -> None:
    fill(cluster, make_disk(first="panic", copies=False))
    ran = cluster.gnt(f"{VERIFY} --boot-until=serial:Welcome", NAME)
    assert ran.code == 1
    assert "did not boot: it ended before the serial console shows 'Welcome'" in ran.err
    assert find_left(cluster, "node2") == []
    fill(cluster, make_disk(first=PROMPT, copies=False, hangs=True))


def test_a_killed_node_daemon_leaves_nothing_once_it_is_back(cluster: Cluster) -> None:
    job = begin(cluster, "--boot-until=serial:Welcome")
    kill_noded(cluster, "node2")
    assert len(find_left(cluster, "node2")) > 1
    # what the guest has on disks has no name any more
    assert not list(cluster.paths("node2").backup_work.rglob("*.raw"))
    assert tool("start-node", cluster.directory, "node2").code == 0
    assert find_left(cluster, "node2") == []
    assert cluster.gnt("job watch", job).code != 0
    assert proof(cluster) == "-"


def test_a_canceled_verification_leaves_nothing(cluster: Cluster) -> None:
    job = begin(cluster, "--boot-until=serial:Welcome")
    cluster.gnt("job cancel --force", job)
    wait_for(lambda: find_left(cluster, "node2") == [], "the end of the copy", 60)
    assert proof(cluster) == "-"


def test_the_guest_agent_answers(cluster: Cluster) -> None:
    cluster.ok("instance modify -H use_guest_agent=true", NAME)
    cluster.ok("backup run", NAME)
    job = begin(cluster)
    control = cluster.paths("node2").backup_work / f"{NAME}@read/guest/kvm/ctrl"
    with agent(control / f"{NAME}.qga") as asked:
        ran = cluster.ok("job watch", job)
    assert asked[0] == "guest-sync"
    assert "it has booted: the guest agent answers after" in ran.out
    assert proof(cluster) == "boot"
    cluster.ok("instance modify -H use_guest_agent=default", NAME)
    cluster.ok("backup run", NAME)


def test_a_port_that_nobody_answers_at(cluster: Cluster) -> None:
    """QEMU itself accepts the connection, which must not count."""
    ran = cluster.gnt(f"{VERIFY} --boot-until=tcp:22 --boot-timeout=4", NAME)
    assert ran.code == 1
    assert "did not boot: not within 4 s: TCP port 22 answers" in ran.err
    assert find_left(cluster, "node2") == []


def test_the_watcher_starts_verifications_of_a_schedule(cluster: Cluster) -> None:
    cluster.ok("backup run", NAME)
    cluster.ok("backup schedule --verify-every=0.0001 --verify-boot=yes", NAME)
    cluster.ok("backup schedule --verify-until=serial:login:", NAME)
    ran = cluster.run_module("ganeti.watcher.program")
    assert ran.code == 0, ran.err
    wait_for(lambda: proof(cluster) == "boot", "the verification", 120)
    verifications = count_verifications(cluster)
    cluster.ok("backup schedule --verify-every=168", NAME)
    cluster.run_module("ganeti.watcher.program")
    assert count_verifications(cluster) == verifications
    cluster.ok("backup schedule --verify-every=0", NAME)


def count_verifications(cluster: Cluster) -> int:
    return sum("BACKUP_VERIFY" in line for line in cluster.ok("job list -o summary").lines)


@needs_programs("restic")
def test_a_backup_of_restic(cluster: Cluster, tmp_path: Path) -> None:
    known = describe(tmp_path / "of", "restic")
    for node in ("node1", "node2"):
        place = cluster.paths(node).backup_repositories
        place.mkdir(mode=0o700)
        shutil.copy(known.file, place)
    cluster.ok("backup run --repository=offsite", NAME)
    assert "it has booted" in cluster.ok(f"{VERIFY} --repository=offsite", NAME).out
    assert find_left(cluster, "node2") == []


@needs_root("to mount")
def test_a_full_disk_ends_the_copy_and_says_nothing_of_the_backup(cluster: Cluster) -> None:
    work = cluster.paths("node2").backup_work
    work.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8M", "none", str(work)], check=True)
    try:
        ran = cluster.gnt(VERIFY, NAME)
        assert ran.code == 1
        assert "MiB are left in" in ran.err
        assert find_left(cluster, "node2") == []
    finally:
        subprocess.run(["umount", str(work)], check=True)
    assert proof(cluster) == "boot"


def test_what_cannot_be_done(cluster: Cluster) -> None:
    for options, said in {
        "--boot-until=tcp:22": "make no sense without --boot",
        "--boot --boot-until=ping": "'ping' is not a sign of life",
        "--boot --boot-until=tcp:70000": "'tcp:70000' is not a sign of life",
        "--boot --boot-until=agent": "had no guest agent",
        "--boot --boot-node=node9": "node9",
        "--boot --boot-timeout=0": "boot_timeout",
    }.items():
        ran = cluster.gnt(f"backup verify {options}", NAME)
        assert ran.code == 1, options
        assert said in ran.err, (options, ran.err)
    cluster.ok("instance modify -B memory=900G", NAME)
    cluster.ok("backup run", NAME)
    ran = cluster.gnt("backup verify --boot", NAME)
    assert ran.code == 1
    ran = cluster.gnt(VERIFY, NAME)
    assert "memory" in ran.err
    cluster.ok("instance modify -B memory=32M", NAME)


def test_an_instance_that_is_gone(cluster: Cluster) -> None:
    cluster.ok("backup run", NAME)
    cluster.ok("instance remove -f", NAME)
    assert "it has booted" in cluster.ok(VERIFY, NAME).out
    assert find_left(cluster, "node2") == []
