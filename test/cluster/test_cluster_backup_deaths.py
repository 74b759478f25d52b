"""Daemons are killed while backups are made or restored, and restores fail in the middle.

Nothing half made stays, or ``gnt-cluster verify`` names it and what cleans it. A table of checksums
that is a FIFO keeps a backup or a restore where it is until the table is written into it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from backup_copies import find_left
from local_cluster import Cluster, copy_cluster, tool
from test_cluster_images import Server
from test_cluster_moves import kill_noded
from waiting import wait_for

from ganeti.backup import served
from ganeti.base import process

pytestmark = pytest.mark.skipif(
    not (shutil.which("qemu-nbd") and shutil.which("qemu-img")),
    reason="qemu-nbd or qemu-img is not installed",
)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts, or confines, as root")
NAME = "web1.example.com"
MIB = 1 << 20
PART = f"the restore of backup [-0-9]+ to instance {NAME} did not end"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with copy_cluster(1) as made:
        assert made.add(NAME, "--no-start", node="node1").code == 0
        yield made


@pytest.fixture(autouse=True)
def prepare(cluster: Cluster) -> Iterator[None]:
    """The instance is stopped, with one backup of what it has; afterwards nothing is left."""
    cluster.gnt("instance shutdown --timeout=0", NAME)
    with find_disk(cluster).open("r+b") as disk:
        disk.write(os.urandom(3 * MIB))
    cluster.ok("backup run --full", NAME)
    cluster.ok("backup prune --keep-last=1", NAME)
    yield
    assert find_left(cluster, "node1") == []
    cluster.ok("cluster verify")


def find_disk(cluster: Cluster) -> Path:
    [path] = (cluster.paths().file_storage / NAME).resolve().iterdir()
    return path


def find_tables(cluster: Cluster) -> list[Path]:
    """Tables of checksums in the repository, that of the newest backup last."""
    return sorted((cluster.paths().backups / NAME).glob("*.sums"))


class Held:
    """A backup or restore that waits for its table of checksums."""

    def __init__(self, cluster: Cluster, line: str) -> None:
        self.table = find_tables(cluster)[-1]
        self._content = self.table.read_bytes()
        self.table.unlink()
        os.mkfifo(self.table)
        ran = cluster.ok(f"{line} --submit --print-jobid", NAME)
        self.job = ran.out.split()[-1]
        wait_for(self._is_read, "the table to be read")

    def _is_read(self) -> bool:
        try:
            self._end = os.open(self.table, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False
        return True

    def mend(self) -> None:
        """The table is a file again."""
        self.table.unlink()
        self.table.write_bytes(self._content)

    def let_go(self) -> None:
        self.mend()
        os.set_blocking(self._end, True)
        with os.fdopen(self._end, "wb") as stream:
            stream.write(self._content)


def restart_master(cluster: Cluster) -> None:
    cluster.kill_master()
    assert cluster.start_master().code == 0


def test_a_restore_whose_master_died_writes_nothing_more(cluster: Cluster) -> None:
    held = Held(cluster, "backup restore -f")
    disk, other = find_disk(cluster), (b"other" * 2 * MIB)[: 8 * MIB]
    before = disk.read_bytes()
    disk.write_bytes(other)
    restart_master(cluster)
    # the guest must not meet what is written behind it
    ran = cluster.gnt("instance startup", NAME)
    assert ran.code == 1
    assert re.search(PART, ran.err)
    held.let_go()
    wait_for(lambda: find_left(cluster, "node1") == [], "the end of the restore")
    # what it was just at is written, no more
    assert disk.read_bytes()[MIB:] == other[MIB:]
    found = cluster.gnt("cluster verify")
    assert found.code == 1
    [command] = re.findall(r"write it again: gnt-(backup restore [^;]+)", found.out)
    cluster.ok(command.replace("restore", "restore -f"))
    assert disk.read_bytes() == before


def test_a_backup_whose_master_died_does_not_read_a_guest_that_runs(cluster: Cluster) -> None:
    """Nobody keeps the instance locked any more, so it could be started."""
    with find_disk(cluster).open("r+b") as disk:
        disk.write(b"changed")
    held = Held(cluster, "backup run")
    restart_master(cluster)
    cluster.ok("instance startup", NAME)
    held.let_go()
    wait_for(lambda: find_left(cluster, "node1") == [], "the end of the backup")
    assert len(cluster.ok("backup history --no-headers", NAME).lines) == 1
    assert len(find_tables(cluster)) == 1
    cluster.ok("instance shutdown --timeout=0", NAME)
    cluster.ok("backup run", NAME)
    assert cluster.cells("backup history -o mode,consistency", NAME)[1:] == [["compare", "clean"]]


@pytest.mark.parametrize("line", ["backup run", "backup restore -f", "backup verify"])
def test_a_killed_node_daemon_leaves_nothing_once_it_is_back(cluster: Cluster, line: str) -> None:
    held = Held(cluster, line)
    work = cluster.paths().backup_work
    [directory] = work.iterdir()
    # a server whose client was killed before it had connected
    argv = served.build_argv(
        str(find_disk(cluster)),
        "raw",
        str(directory / "a.sock"),
        str(directory / "a.pid"),
        write=False,
    )
    subprocess.run(argv, check=True)
    server = int((directory / "a.pid").read_text())
    kill_noded(cluster, "node1")
    os.close(held._end)
    held.mend()
    assert tool("start-node", cluster.directory, "node1").code == 0
    assert process.wait_exit(server, 10)
    assert list(work.iterdir()) == []
    assert cluster.gnt("job watch", held.job).code == 1
    assert len(cluster.ok("backup history --no-headers", NAME).lines) == 1
    if "restore" in line:
        assert re.search(PART, cluster.gnt("cluster verify").out)
        cluster.ok("backup restore -f", NAME)


def test_a_restore_that_fails_in_the_middle(cluster: Cluster) -> None:
    """A guest does not start on disks that are restored in part, except with --force."""
    disk = find_disk(cluster)
    with disk.open("r+b") as stream:
        stream.seek(7 * MIB)
        stream.write(b"changed")
    cluster.ok("backup run", NAME)
    good, bad = find_tables(cluster)
    image = bad.with_suffix(".qcow2")
    with image.open("r+b") as stream:
        data = stream.read().replace(b"changed", b"damaged")
        stream.seek(0)
        stream.write(data)
    with disk.open("r+b") as stream:
        stream.write(b"other" * MIB)
    ran = cluster.gnt("backup restore -f", NAME)
    assert ran.code == 1
    assert "do not match their checksum" in ran.err
    assert disk.read_bytes()[: 5 * MIB] != b"other" * MIB
    ran = cluster.gnt("instance startup", NAME)
    assert ran.code == 1
    [named] = re.findall(r"gnt-(backup restore \S+)", ran.err)
    assert named == f"backup restore --backup={bad.name[:15]}"
    assert re.search(f"ERROR: instance {NAME}: {PART}", cluster.gnt("cluster verify").out)
    # one disk is not all of them, all of another backup is
    cluster.ok(f"backup restore -f --backup={good.name[:15]}", NAME)
    cluster.ok("cluster verify")
    assert cluster.gnt("backup restore -f", NAME).code == 1
    cluster.ok("instance startup --force", NAME)
    cluster.ok("instance reboot", NAME)


def test_a_restore_that_could_not_begin_forbids_nothing(cluster: Cluster) -> None:
    """Something else is at work with the backups; the disks are as they were."""
    held = Held(cluster, "backup verify")
    ran = cluster.gnt("backup restore -f", NAME)
    assert ran.code == 1
    assert "has been running" in ran.err
    held.let_go()
    cluster.ok("job watch", held.job)
    cluster.ok("instance startup", NAME)


def test_a_repository_that_goes_away_in_the_middle(cluster: Cluster) -> None:
    """As one that is not mounted any more: what is below the mount point gets nothing."""
    place = cluster.paths().backups.resolve()
    away = place.with_name("away")
    before = cluster.cells("backup history -o id", NAME)
    ran = cluster.ok("backup run --full --bandwidth=1 --submit --print-jobid", NAME)
    job = ran.out.split()[-1]
    made = [place / NAME / f"{before[0][0]}-0.qcow2"]

    def is_written() -> bool:
        new = [path for path in (place / NAME).glob("*.qcow2") if path not in made]
        return any(path.stat().st_size > MIB for path in new)

    wait_for(is_written, "the backup to be at work")
    place.rename(away)
    place.mkdir()
    ran = cluster.gnt("job watch", job)
    assert ran.code == 1
    assert f"cannot finish the backup in {cluster.paths().backups / NAME}: No such" in ran.err
    assert list(place.iterdir()) == []
    refused = cluster.gnt("backup run", NAME)
    assert "check that the right file system is mounted there" in refused.err
    shutil.rmtree(place)
    away.rename(place)
    assert cluster.cells("backup history -o id", NAME) == before
    cluster.ok("backup run", NAME)
    cluster.ok("backup verify", NAME)
    assert len(list((place / NAME).glob("2*"))) == 6


def test_a_new_backup_is_later_than_all_that_are_there(cluster: Cluster) -> None:
    """Whatever clock they were made by: one of the same name would take their files."""
    place = cluster.paths().backups / NAME
    [[known]] = cluster.cells("backup history -o id", NAME)
    later = "20991231-235959"
    for path in place.glob(f"{known}*"):
        if path.suffix == ".json":
            path.write_text(path.read_text().replace(known, later))
        path.rename(path.with_name(path.name.replace(known, later)))
    cluster.ok("backup run", NAME)
    assert cluster.cells("backup history -o id", NAME) == [[later], ["21000101-000000"]]
    assert cluster.cells("instance list -o backup.last", NAME) == [["21000101-000000"]]
    cluster.ok("backup verify", NAME)
    shutil.rmtree(place)


@needs_root
def test_an_image_whose_node_daemon_died(cluster: Cluster) -> None:
    with Server(b"") as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            argv = ["--format=raw", "--submit", "--print-jobid", f"{server.url}/endless.raw"]
            job = cluster.ok("image add", *argv).out.split()[-1]
            assert server.begun.wait(30)
            kill_noded(cluster, "node1")
            assert tool("start-node", cluster.directory, "node1").code == 0
            assert cluster.gnt("job watch", job).code == 1
        finally:
            server.stopping.set()
            server.shutdown()
            thread.join()
    check_no_image(cluster)


@needs_root
def test_an_image_for_which_there_is_no_room(cluster: Cluster, tmp_path: Path) -> None:
    images = cluster.paths().images
    images.mkdir(parents=True, exist_ok=True)
    source = tmp_path / "large.raw"
    source.write_bytes(os.urandom(3 * MIB))
    mount = ["mount", "-t", "tmpfs", "-o", "size=4M", "none", str(images)]
    subprocess.run(mount, check=True)
    try:
        ran = cluster.gnt("image add --format=raw", str(source))
        assert ran.code == 1
        assert "No space left on device" in ran.err
        check_no_image(cluster)
    finally:
        subprocess.run(["umount", str(images)], check=True)
    cluster.ok("image add --format=raw", str(source))
    cluster.ok("image remove large")
    check_no_image(cluster)


def check_no_image(cluster: Cluster) -> None:
    assert cluster.cells("image list -o name") == []
    images = cluster.paths().images
    assert [path for path in images.rglob("*") if path.is_file()] == []
