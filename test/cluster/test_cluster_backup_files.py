"""Single files of a backup: where they go, what is refused, and that nothing else stays.

The helper guest here copies a sector in place of files; a Linux reads real ones in
``test/helper/test_helper_linux.py``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from archive_bench import describe
from backup_copies import find_left
from helper_sector import make_disk
from local_cluster import Cluster, copy_cluster, tool
from needs import needs_programs
from test_cluster_moves import kill_noded
from waiting import wait_for

pytestmark = [
    pytest.mark.qemu,
    needs_programs("qemu-system-x86_64", "qemu-nbd"),
]
NAME = "web1.example.com"
READ = "backup restore --node=node2 --files=/etc/fstab"
DONE = "ganeti-helper: files 3, bytes 512\r\nganeti-helper: exit 0"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with copy_cluster(2, "kvm") as made:
        made.ok(
            "instance add -n node1 -o noop -t sharedfile --disk 0:size=2M --no-nics -B memory=32M"
            " -H kvm:boot_order=disk --no-start",
            NAME,
        )
        made.ok("backup run", NAME)
        yield made


def offer(cluster: Cluster, **facts: object) -> None:
    """Have the helper guest do this on both nodes."""
    for node in ("node1", "node2"):
        place = cluster.paths(node).os_images
        place.mkdir(parents=True, exist_ok=True)
        (place / "helper.raw").write_bytes(make_disk(**facts))
    cluster.ok("cluster modify --zeroing-image=/srv/ganeti/os-images/helper.raw")


def find_archives(cluster: Cluster, node: str = "node2") -> list[Path]:
    return sorted(cluster.paths(node).restored_files.glob("*"))


def test_files_go_into_an_archive_for_root(cluster: Cluster) -> None:
    offer(cluster, last=DONE)
    ran = cluster.ok(READ, NAME)
    [archive] = find_archives(cluster)
    assert f"* 3 files, 1M: {archive} on node node2" in ran.out
    # what the guest wrote to its disk for them
    assert archive.read_bytes().startswith(b"environment\0")
    assert archive.stat().st_size == 512
    assert archive.stat().st_mode & 0o777 == 0o600
    assert archive.parent.stat().st_mode & 0o777 == 0o700
    assert find_left(cluster, "node2") == []
    archive.unlink()


def test_without_a_node_the_master_reads(cluster: Cluster) -> None:
    assert "on node node1" in cluster.ok("backup restore --files=/etc/fstab", NAME).out
    [archive] = find_archives(cluster, "node1")
    archive.unlink()


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ("/etc/fstab: no file system has it\r\nganeti-helper: exit 1", "fstab: no file system has"),
        ("ganeti-helper: exit 0", "does not say how long its archive is"),
        ("ganeti-helper: files 1, bytes 9999999999999\r\nganeti-helper: exit 0", "does not say"),
        ("", "ended without printing an exit code"),
    ],
)
def test_a_guest_that_fails_leaves_nothing(cluster: Cluster, last: str, said: str) -> None:
    offer(cluster, last=last)
    ran = cluster.gnt(READ, NAME)
    assert ran.code == 1
    assert said in ran.err
    assert find_archives(cluster) == []
    assert find_left(cluster, "node2") == []


def begin(cluster: Cluster) -> str:
    """The job of a helper guest that does not end."""
    offer(cluster, last="slow", hangs=True)
    ran = cluster.ok(f"{READ} --submit --print-jobid", NAME)
    console = cluster.paths("node2").backup_work / f"{NAME}@read/guest/log/{NAME}-serial.log"
    wait_for(lambda: console.exists() and "slow" in console.read_text(), "the guest to run", 60)
    return ran.out.strip().split()[-1]


def test_a_canceled_job_ends_the_guest(cluster: Cluster) -> None:
    job = begin(cluster)
    cluster.gnt("job cancel --force", job)
    wait_for(lambda: find_left(cluster, "node2") == [], "the end of the guest", 60)
    assert find_archives(cluster) == []


def test_a_killed_node_daemon_leaves_nothing_once_it_is_back(cluster: Cluster) -> None:
    job = begin(cluster)
    kill_noded(cluster, "node2")
    assert len(find_left(cluster, "node2")) > 1
    assert tool("start-node", cluster.directory, "node2").code == 0
    assert find_left(cluster, "node2") == []
    ran = cluster.gnt("job watch", job)
    assert ran.code != 0
    assert find_archives(cluster) == []


@needs_programs("restic")
def test_files_of_a_backup_of_restic(cluster: Cluster, tmp_path: Path) -> None:
    offer(cluster, last=DONE)
    known = describe(tmp_path / "of", "restic")
    for node in ("node1", "node2"):
        place = cluster.paths(node).backup_repositories
        place.mkdir(mode=0o700)
        shutil.copy(known.file, place)
    cluster.ok("backup run --repository=offsite", NAME)
    assert "* 3 files" in cluster.ok(f"{READ} --repository=offsite", NAME).out
    [archive] = find_archives(cluster)
    archive.unlink()


def test_what_cannot_be_done(cluster: Cluster) -> None:
    for options, said in {
        "--files=etc/fstab": "'etc/fstab' is not the full path",
        "--files=/etc/../fstab": "is not the full path",
        "--files=/a --as=web2": "--as makes no sense with --files",
        "--files=/a --restore-disk=0": "--restore-disk makes no sense with --files",
        "--files=/a --backup=20200101-000000": "there is no backup 20200101-000000",
        "--files=/a --node=node9": "node9",
    }.items():
        ran = cluster.gnt(f"backup restore {options}", NAME)
        assert ran.code == 1, options
        assert said in ran.err, (options, ran.err)
    cluster.ok("cluster modify --zeroing-image=")
    ran = cluster.gnt(READ, NAME)
    assert "gnt-cluster modify --zeroing-image" in ran.err
