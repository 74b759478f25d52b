"""Backups of real guests: what is read, when bitmaps are trusted, restores, refusals."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_agent import agent
from local_cluster import Cluster, copy_cluster, tool
from rapi_server import Api
from test_cluster_moves import kill_noded
from waiting import wait_for

from ganeti import errors
from ganeti.hypervisor.kvm.driver import KvmHypervisor
from ganeti.hypervisor.kvm.qmp import Qmp
from ganeti.net import nbd

pytestmark = [
    pytest.mark.qemu,
    pytest.mark.skipif(
        not (shutil.which("qemu-system-x86_64") and shutil.which("qemu-nbd")),
        reason="qemu-system-x86_64 or qemu-nbd is not installed",
    ),
]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")
NAME = "web1.example.com"
KIB = 1024
FIELDS = "--no-headers --separator=: -o mode,read_bytes,stored_bytes"


class Guest:
    """A running instance, its disk and the node that it is on."""

    def __init__(self, cluster: Cluster, name: str = NAME) -> None:
        self.cluster = cluster
        self.node = "node1"
        self.name = name

    def socket(self, kind: str) -> Path:
        return self.cluster.paths(self.node).kvm / "ctrl" / f"{self.name}.{kind}"

    def write(self, *commands: str, disk: int = 0) -> None:
        """What the guest would write: commands of qemu-io, past its device."""
        with Qmp.connect(self.socket("qmp")) as qmp:
            found = qmp.command("query-block")
            devices = sorted(
                (each["inserted"]["image"]["virtual-size"], each["qdev"])
                for each in found
                if each.get("qdev")
            )
            for command in (*commands, "flush"):
                line = f'qemu-io -d {devices[disk][1]} "{command}"'
                said = qmp.command("human-monitor-command", {"command-line": line})
                assert "rror" not in said, said

    @property
    def disk(self) -> Path:
        [path] = (self.cluster.paths("node1").shared_file_storage / NAME).iterdir()
        return path

    def truth(self) -> str:
        return checksum(self.disk)

    def backup(self, *options: str) -> tuple[str, int, int]:
        """Mode, bytes read and stored of a new backup."""
        self.cluster.ok("backup run", *options, NAME)
        return self.read_last()

    def read_last(self) -> tuple[str, int, int]:
        line = self.cluster.ok(f"backup history {FIELDS}", NAME).lines[-1]
        mode, read, stored = line.split(":")
        return mode, int(read), int(stored)

    def migrate(self) -> None:
        self.node = "node2" if self.node == "node1" else "node1"
        self.cluster.ok(f"instance migrate -f -n {self.node}", NAME, timeout=120)

    def crash(self) -> None:
        """QEMU dies, and the instance is started again."""
        pid = int((self.cluster.paths(self.node).kvm / "pid" / NAME).read_text())
        os.kill(pid, signal.SIGKILL)
        self.cluster.ok("instance startup", NAME)


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def guest() -> Iterator[Guest]:
    with copy_cluster(2, "kvm") as made:
        made.ok(
            "instance add -n node1 -o noop -t sharedfile --disk 0:size=64M --no-nics"
            " -B memory=32M -H kvm:boot_order=disk",
            NAME,
        )
        yield Guest(made)


def restored(cluster: Cluster, *options: str) -> str:
    """The checksum of the disk of a new instance made of a backup."""
    name = "copy.example.com"
    cluster.ok("backup restore --no-start -n node1 --as", name, *options, NAME)
    [path] = (cluster.paths("node1").shared_file_storage / name).iterdir()
    found = checksum(path)
    cluster.ok("instance remove -f", name)
    return found


def test_only_what_was_written_is_read(guest: Guest) -> None:
    guest.write("write -P 1 0 3M", "write -P 2 40M 64k")
    assert guest.backup()[0] == "full"
    first = guest.truth()
    guest.write("write -P 3 20M 640k", "write -P 4 41M 512")
    assert guest.backup() == ("dirty", 704 * KIB, 704 * KIB)
    assert restored(guest.cluster) == guest.truth()
    oldest = guest.cluster.ok("backup history --no-headers -o id", NAME).lines[0].strip()
    assert restored(guest.cluster, "--backup", oldest) == first


def test_backups_of_others_are_not_shown(guest: Guest) -> None:
    history = "backup history --no-headers -o instance"
    assert guest.cluster.cells(history, "web1") == [[NAME], [NAME]]
    assert guest.cluster.cells(history, "web2") == []


def test_the_remote_api_lists_backups(guest: Guest) -> None:
    api = Api(guest.cluster)
    oldest, newest = api.get(f"/2/instances/{NAME}/backups", Authorization="reader")
    assert api.get("/2/backups") == [oldest, newest]
    assert (oldest["instance"], oldest["mode"], oldest["repository"]) == (NAME, "full", "default")
    assert newest["mode"] == "dirty"
    assert newest["base"] == oldest["id"]
    assert oldest["time"] < newest["time"]
    assert api.get("/2/instances/web2.example.com/backups") == []
    assert api.ask("GET /2/backups", Authorization="nobody").status == 403


def test_nothing_is_read_when_nothing_was_written(guest: Guest) -> None:
    assert guest.backup() == ("dirty", 0, 0)


def test_an_nbd_server_that_a_killed_node_daemon_left_is_stopped(guest: Guest) -> None:
    """It was killed after it had started the server, and before it had exported a disk."""
    with Qmp.connect(guest.socket("qmp")) as qmp:
        anywhere = {"type": "inet", "data": {"host": "127.0.0.1", "port": "0"}}
        qmp.command("nbd-server-start", {"addr": anywhere})
    assert guest.backup() == ("dirty", 0, 0)


def test_bitmaps_travel_with_a_migration(guest: Guest) -> None:
    guest.write("write -P 5 30M 64k")
    guest.migrate()
    guest.write("write -P 6 31M 64k")
    assert guest.backup() == ("dirty", 128 * KIB, 128 * KIB)
    assert restored(guest.cluster) == guest.truth()


def test_after_a_crash_all_is_compared_and_only_differences_are_stored(guest: Guest) -> None:
    guest.write("write -P 7 32M 64k")
    guest.crash()
    guest.write("write -z -u 20M 640k")
    mode, read, stored = guest.backup()
    assert (mode, stored) == ("compare", 704 * KIB)
    assert read < 5 * KIB * KIB
    assert restored(guest.cluster) == guest.truth()


def test_a_node_daemon_that_dies_leaves_nothing_and_bitmaps_stay_right(guest: Guest) -> None:
    cluster, node = guest.cluster, guest.node
    guest.write("write -P 8 0 24M")
    job = (
        cluster.ok("backup run --bandwidth=2 --submit --print-jobid", NAME).out.strip().split()[-1]
    )
    work = cluster.paths(node).backup_work / NAME
    wait_for(lambda: list(work.glob("*.qcow2")), "the backup to begin", 60)
    kill_noded(cluster, node)
    guest.write("write -P 9 50M 64k")
    assert tool("start-node", cluster.directory, node).code == 0
    # the guest has nothing of it any more, so nothing grows on the node
    assert not list(cluster.paths(node).backup_work.glob("*"))
    assert cluster.gnt("job watch", job).code != 0
    mode, read, _stored = guest.backup()
    assert (mode, read) == ("dirty", 24 * KIB * KIB + 64 * KIB)
    assert restored(cluster) == guest.truth()
    left = {path.name.split("-0.")[0].split(".json")[0] for path in repository(guest).glob("2*")}
    assert len(left) == len(cluster.ok("backup history --no-headers", NAME).lines)
    assert not list(cluster.paths(node).backup_work.glob("*"))


def test_what_is_written_during_a_backup_is_not_in_it(guest: Guest) -> None:
    cluster = guest.cluster
    guest.write("write -P 18 0 8M")
    truth = guest.truth()
    job = (
        cluster.ok("backup run --bandwidth=4 --submit --print-jobid", NAME).out.strip().split()[-1]
    )
    work = cluster.paths(guest.node).backup_work / NAME
    wait_for(lambda: list(work.glob("*.sock")), "the backup to begin", 60)
    guest.write("write -P 19 0 4M", "write -P 20 6M 4M", "write -z 50M 1M")
    cluster.ok("job watch", job, timeout=120)
    assert restored(cluster) == truth
    assert guest.backup()[0] == "dirty"
    assert restored(cluster) == guest.truth()


def repository(guest: Guest) -> Path:
    return guest.cluster.paths("node1").backups / NAME


def test_a_canceled_backup_leaves_nothing(guest: Guest) -> None:
    cluster = guest.cluster
    before = sorted(path.name for path in repository(guest).glob("2*"))
    guest.write("write -P 10 0 16M")
    job = (
        cluster.ok("backup run --bandwidth=1 --submit --print-jobid", NAME).out.strip().split()[-1]
    )
    work = cluster.paths(guest.node).backup_work / NAME
    wait_for(lambda: list(work.glob("*.qcow2")), "the backup to begin", 60)
    cluster.gnt("job cancel --force", job)
    wait_for(lambda: not work.exists(), "the end of the backup", 60)
    assert sorted(path.name for path in repository(guest).glob("2*")) == before
    assert guest.backup()[0] == "dirty"
    assert restored(cluster) == guest.truth()


def test_old_backups_go_and_the_rest_is_right(guest: Guest) -> None:
    cluster = guest.cluster
    cluster.ok("backup schedule --every=24 --keep-last=2", NAME)
    guest.write("write -P 11 60M 64k")
    guest.backup()
    cluster.ok("backup prune", NAME)
    assert len(cluster.ok("backup history --no-headers", NAME).lines) == 2
    assert restored(cluster) == guest.truth()
    cluster.ok("backup verify", NAME)
    assert cluster.cells("backup history --no-headers -o proof", NAME) == [["-"], ["checksum"]]


def test_a_damaged_backup_is_named(guest: Guest) -> None:
    cluster = guest.cluster
    newest = max(repository(guest).glob("*.sums"))
    good = newest.read_bytes()
    newest.write_bytes(good[:-2])
    ran = cluster.gnt("backup verify", NAME)
    assert ran.code == 1
    assert newest.name in ran.err
    newest.write_bytes(good)
    # what was found bad is not built on, and what cannot be read neither
    assert guest.backup()[0] == "full"
    newest = max(repository(guest).glob("*.sums"))
    good = newest.read_bytes()
    newest.write_bytes(good[:-2])
    assert guest.backup()[0] == "full"
    newest.write_bytes(good)
    assert restored(cluster) == guest.truth()


def test_a_damaged_manifest_fails_only_its_own_backup(guest: Guest) -> None:
    cluster = guest.cluster
    guest.backup()
    damaged = max(repository(guest).glob("*.json"))
    damaged.write_text("{")
    ran = cluster.ok("backup run", NAME)
    assert f"backup {damaged.stem} cannot be built on, so all of the disks was stored" in ran.out
    assert guest.read_last()[0] == "full"
    history = "backup history --no-headers --separator=@ -o id,size,proof"
    lines = [line for line in cluster.ok(history, NAME).lines if line.startswith(damaged.stem)]
    assert len(lines) == 1
    assert "bad: " in lines[0]
    assert "it is damaged" in lines[0]
    cluster.ok("backup verify", NAME)
    ran = cluster.gnt("backup verify --backup", damaged.stem, NAME)
    assert ran.code == 1
    assert f"{damaged.name}: it is damaged" in ran.err
    ran = cluster.ok("backup prune --keep-last=1", NAME)
    assert " MiB in " not in ran.out
    assert not list(repository(guest).glob(f"{damaged.stem}*"))
    assert restored(cluster) == guest.truth()


@contextlib.contextmanager
def small(path: Path, size: str) -> Iterator[None]:
    """A file system that is soon full."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(path)], check=True)


@needs_root
def test_a_guest_never_notices_that_a_node_is_full(guest: Guest, tmp_path: Path) -> None:
    """Every write of :meth:`Guest.write` fails the test when QEMU refuses it."""
    driver = KvmHypervisor(guest.cluster.paths(guest.node))
    guest.write("write -P 14 0 8M")
    with small(tmp_path, "2M"):
        moment = driver.freeze_disks(NAME, tmp_path, None, "20260101-000000")
        assert moment is not None
        [disk] = moment.disks
        with nbd.connect(disk.socket, disk.export) as reader:
            guest.write("write -P 15 0 64k")
            assert reader.read(0, 4096) == bytes([14]) * 4096
            guest.write("write -P 16 1M 6M", "read -P 16 1M 6M")
            with pytest.raises(errors.BlockDeviceError):
                reader.read(0, 4096)
        guest.write("write -P 17 1M 6M")
        driver.thaw_disks(NAME, tmp_path, "20260101-000000", keep=False)
    guest.write("read -P 15 0 64k", "read -P 17 1M 6M")
    guest.backup()
    assert restored(guest.cluster) == guest.truth()


def test_a_guest_that_a_killed_daemon_left_standing_goes_on(guest: Guest, tmp_path: Path) -> None:
    driver = KvmHypervisor(guest.cluster.paths(guest.node))
    driver.freeze_disks(NAME, tmp_path, None, "20260101-000000")
    with Qmp.connect(guest.socket("qmp")) as qmp:
        qmp.command("stop")
    (tmp_path / "held").touch()
    driver.thaw_disks(NAME, tmp_path, None, keep=False)
    with Qmp.connect(guest.socket("qmp")) as qmp:
        assert qmp.command("query-status")["status"] == "running"
        assert not [
            each
            for each in qmp.command("query-named-block-nodes", {"flat": True})
            if each["node-name"].startswith("frozen-")
        ]
    assert not list(tmp_path.iterdir())


@needs_root
def test_a_full_repository_ends_a_backup_and_nothing_stays(guest: Guest) -> None:
    cluster = guest.cluster
    guest.backup()
    place = repository(guest).parent
    with small(place, "1M"):
        ran = cluster.gnt("backup run --full", NAME)
        assert ran.code == 1
        assert "No space left" in ran.err
        assert f"/srv/ganeti/backup/{NAME}/" in ran.err
        assert not list((place / NAME).glob("2*"))
    assert guest.backup()[0] == "compare"
    assert restored(cluster) == guest.truth()


def test_two_disks_of_a_guest_with_an_agent(guest: Guest) -> None:
    cluster, name = guest.cluster, "db1.example.com"
    cluster.ok(
        "instance add -n node1 -o noop -t sharedfile --disk 0:size=8M --disk 1:size=12M --no-nics"
        " -B memory=32M -H kvm:boot_order=disk,use_guest_agent=true",
        name,
    )
    two = Guest(cluster, name)
    two.write("write -P 1 0 1M")
    with agent(two.socket("qga")) as asked:
        cluster.ok("backup run", name)
    assert asked == ["guest-sync", "guest-fsfreeze-freeze", "guest-sync", "guest-fsfreeze-thaw"]
    two.write("write -P 2 1M 64k")
    two.write("write -P 3 11M 64k", disk=1)
    cluster.ok("backup run", name)
    history = "backup history --no-headers -o disks,mode,stored_bytes,consistency"
    assert cluster.cells(history, name)[1:] == [["2", "dirty", str(128 * KIB), "crash"]]
    assert cluster.cells(history, name)[0][-1] == "frozen"
    cluster.ok("instance shutdown --timeout=0", name)
    place = cluster.paths("node1").shared_file_storage / name
    disks = sorted(place.iterdir(), key=lambda path: path.stat().st_size)
    truth = [checksum(path) for path in disks]
    for path in disks:
        with path.open("r+b") as stream:
            stream.write(b"other" * 1000)
    ran = cluster.gnt("backup restore -f --restore-disk=2", name)
    assert ran.code == 1
    assert "has 2 disks, but none of number 2" in ran.err
    cluster.ok("backup restore -f --restore-disk=1", name)
    assert checksum(disks[0]) != truth[0]
    assert checksum(disks[1]) == truth[1]
    cluster.ok("backup restore -f", name)
    assert [checksum(path) for path in disks] == truth
    cluster.ok("backup run", name)
    assert cluster.cells(history, name)[-1] == ["2", "compare", "0", "clean"]
    cluster.ok("instance remove -f", name)


def test_words_that_cannot_be_done(guest: Guest) -> None:
    cluster = guest.cluster
    for line, said in {
        f"backup restore -f {NAME}": "runs; stop it first",
        "backup restore --as web9 -n node1 nobody": "there is no backup of 'nobody'",
        f"backup restore -n node1 {NAME}": "give its name with --as",
        f"backup run --repository=/etc {NAME}": "/etc/ganeti/backup-paths",
        f"backup run --repository=./here {NAME}": "full path",
        f"backup run --repository=here {NAME}": "this node has no repository 'here'",
        f"backup verify --backup=yesterday {NAME}": "is not the id of a backup",
        f"backup schedule {NAME}": "nothing to change",
    }.items():
        ran = cluster.gnt(line)
        assert ran.code == 1, line
        assert said in ran.err, (line, ran.err)


def test_a_repository_that_is_not_mounted_does_not_begin_again(guest: Guest) -> None:
    cluster = guest.cluster
    link = cluster.paths(guest.node).backups
    target = link.resolve()
    link.unlink()
    link.mkdir()
    try:
        ran = cluster.gnt("backup run", NAME)
        assert ran.code == 1
        assert "check that the right file system is mounted" in ran.err
    finally:
        shutil.rmtree(link)
        link.symlink_to(target)


def test_restored_over_itself(guest: Guest) -> None:
    cluster = guest.cluster
    guest.backup()
    truth = guest.truth()
    guest.write("write -P 12 0 1M")
    cluster.ok("instance shutdown --timeout=0", NAME)
    assert guest.truth() != truth
    cluster.ok("backup restore -f", NAME)
    assert guest.truth() == truth
    mode, _read, stored = guest.backup()
    assert (mode, stored) == ("compare", 0)
