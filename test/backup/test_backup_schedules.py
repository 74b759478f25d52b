"""Random schedules of writes, crashes, migrations, stops and backups, with a real QEMU.

After each backup everything in the repository must show the disk as it was at that time.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from archive_bench import Disk, describe
from local_cluster import Cluster, copy_cluster
from needs import needs_programs

from ganeti.backup.archive import Archive
from ganeti.backup.definition import Definition
from ganeti.base.clock import SYSTEM
from ganeti.hypervisor.kvm.qmp import Qmp

pytestmark = needs_programs("qemu-system-x86_64", "qemu-nbd")
NAME = "web1.example.com"
MIB = 1024 * 1024
SIZE = 16 * MIB
SCHEDULES = int(os.environ.get("BACKUP_SCHEDULES") or 0)
#: restic or borg; without it a directory
PROGRAM = os.environ.get("BACKUP_PROGRAM") or ""
SEED = int(os.environ.get("BACKUP_SEED") or 1)
ACTIONS = (
    "write",
    "write",
    "write",
    "zero",
    "backup",
    "backup",
    "crash",
    "migrate",
    "stop",
    "prune",
)


class Guest:
    """One instance through all schedules; ``truths`` are checksums of what each backup saw."""

    def __init__(self, cluster: Cluster, chance: random.Random, known: Definition | None) -> None:
        self.cluster, self.chance, self.known = cluster, chance, known
        self.node = "node1"
        self.truths: dict[str, str] = {}
        self.modes: list[str] = []

    def _io(self, command: str) -> None:
        with Qmp.connect(self.cluster.paths(self.node).kvm / "ctrl" / f"{NAME}.qmp") as qmp:
            [device] = [each["qdev"] for each in qmp.command("query-block") if each.get("qdev")]
            for line in (command, "flush"):
                text = f'qemu-io -d {device} "{line}"'
                said = qmp.command("human-monitor-command", {"command-line": text})
                assert "rror" not in said, said

    def _area(self) -> str:
        offset = self.chance.randrange(SIZE // 512) * 512
        length = min(self.chance.choice((512, 4096, 65536, MIB)), SIZE - offset)
        return f"{offset} {length}"

    def write(self) -> None:
        self._io(f"write -P {self.chance.randrange(1, 256)} {self._area()}")

    def zero(self) -> None:
        self._io(f"write -z -u {self._area()}")

    def crash(self) -> None:
        pid = int((self.cluster.paths(self.node).kvm / "pid" / NAME).read_text())
        os.kill(pid, signal.SIGKILL)
        self.cluster.ok("instance startup", NAME)

    def stop(self) -> None:
        """Stopped, perhaps backed up so, and started again."""
        self.cluster.ok("instance shutdown --timeout=0", NAME)
        if self.chance.random() < 0.5:
            self.backup()
        self.cluster.ok("instance startup", NAME)

    def migrate(self) -> None:
        self.node = "node2" if self.node == "node1" else "node1"
        self.cluster.ok(f"instance migrate -f -n {self.node}", NAME, timeout=120)

    def prune(self) -> None:
        self.cluster.ok(f"backup prune --keep-last={self.chance.randrange(1, 4)}", NAME)

    def backup(self) -> None:
        [disk] = (self.cluster.paths("node1").shared_file_storage / NAME).iterdir()
        truth = hashlib.sha256(disk.read_bytes()).hexdigest()
        self.cluster.ok("backup run", *(["--full"] if self.chance.random() < 0.05 else []), NAME)
        line = self.cluster.ok("backup history --no-headers --separator=: -o id,mode", NAME).lines[
            -1
        ]
        backup, mode = line.split(":")
        self.truths[backup] = truth
        self.modes.append(mode)

    def check_backups(self) -> None:
        """The repository has the backups that it should have, and each shows its truth."""
        left = {path.stem for path in self._directory.glob("*.json")}
        if self.known is not None:
            left = {manifest.id for manifest in open_archive(self.known).list_all()}
        self.truths = {backup: truth for backup, truth in self.truths.items() if backup in left}
        assert set(self.truths) == left
        for backup, truth in self.truths.items():
            assert self._read(backup) == truth, f"backup {backup} is not what the disk was"

    @property
    def _directory(self) -> Path:
        return self.cluster.paths("node1").backups / NAME

    def _read(self, backup: str) -> str:
        if self.known is not None:
            disk, archive = Disk(b"other" * (SIZE // 5 + 1)), open_archive(self.known)
            manifest, work = archive.find(backup), self.cluster.directory
            archive.restore_disk(manifest, 0, disk, work, lambda *_: None)
            return hashlib.sha256(disk.content[:SIZE]).hexdigest()
        out = self.cluster.directory / "read.raw"
        source = self._directory / f"{backup}-0.qcow2"
        subprocess.run(["qemu-img", "convert", "-O", "raw", str(source), str(out)], check=True)
        return hashlib.sha256(out.read_bytes()).hexdigest()


def open_archive(known: Definition) -> Archive:
    return Archive(known, NAME, SYSTEM, time.sleep)


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    with copy_cluster(2, "kvm") as made:
        made.ok(
            "instance add -n node1 -o noop -t sharedfile --disk 0:size=16M --no-nics"
            " -B memory=32M -H kvm:boot_order=disk",
            NAME,
        )
        known = None
        if PROGRAM:
            known = describe(tmp_path_factory.mktemp("program") / "of", PROGRAM)
            for node in ("node1", "node2"):
                place = made.paths(node).backup_repositories
                place.mkdir(mode=0o700)
                shutil.copy(known.file, place)
            made.ok("backup schedule --repository=offsite", NAME)
        found = Guest(made, random.Random(SEED), known)
        yield found
        print({mode: found.modes.count(mode) for mode in sorted(set(found.modes))})


@pytest.mark.parametrize("number", range(SCHEDULES))
def test_backups_show_the_disk_as_it_was(guest: Guest, number: int) -> None:
    actions = [guest.chance.choice(ACTIONS) for _ in range(guest.chance.randrange(2, 6))]
    for action in [*actions, "backup"]:
        getattr(guest, action)()
        if action in ("backup", "prune", "stop"):
            guest.check_backups()
    if number % 10 == 9:
        guest.cluster.ok("backup verify", NAME)
