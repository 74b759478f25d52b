"""The master is killed at every step of backups, restores, snapshots and images.

A step is a call to a node or a write of the configuration. Afterwards nothing half made is there,
or ``gnt-cluster verify`` names it and the command that cleans it; that command is run, and then
verification finds nothing. ``BACKUP_STEPS`` is at how many steps of each operation, or ``all``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import re
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent / "crash"))

from crash_run import CHECKPOINT_AFTER
from disk_faults import Point
from load import run_job
from local_cluster import copy_cluster
from master_process import MasterProcess
from waiting import wait_for

from ganeti import constants
from ganeti.base import services

pytestmark = pytest.mark.skipif(
    not (shutil.which("qemu-nbd") and shutil.which("qemu-img")), reason="needs qemu-utils"
)
WEB, COPY = "web.example.com", "copy.example.com"
MIB = 1 << 20
SAMPLE = 4
_STEPS = re.compile(
    r"serve: (call (backup|blockdev|disk|image|instance)_|(write|fsync) .*config\.journal$)"
)
#: Commands that verification names.
_NAMED = re.compile(
    r"gnt-((?:backup restore|instance snapshot|image remove|disk remove) [^;\n]+"
    r"|cluster redist-conf)"
)

Change = dict[str, object]
OPERATIONS: dict[str, Change] = {
    "run": {"OP_ID": "OP_BACKUP_RUN", "instance_name": WEB},
    "restore": {"OP_ID": "OP_BACKUP_RESTORE", "instance_name": WEB},
    "prune": {"OP_ID": "OP_BACKUP_PRUNE", "instance_name": WEB, "keep_last": 1},
    "verify": {"OP_ID": "OP_BACKUP_VERIFY", "instance_name": WEB},
    "create": {"OP_ID": "OP_SNAPSHOT_CREATE", "instance_name": WEB, "snapshot_name": "new"},
    "revert": {"OP_ID": "OP_SNAPSHOT_REVERT", "instance_name": WEB, "snapshot_name": "old"},
    "image": {
        "OP_ID": "OP_IMAGE_ADD",
        "image_name": "tiny",
        "source": "tiny.raw",
        "format": "raw",
    },
    "removal": {"OP_ID": "OP_IMAGE_REMOVE", "image_name": "kept"},
}


class Steps:
    """One node, a stopped instance with a disk, a backup and a snapshot of it."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._resources = contextlib.ExitStack()
        self.cluster = self._resources.enter_context(copy_cluster(1))
        self.paths = self.cluster.paths()
        self.source = directory / "tiny.raw"
        self.source.write_bytes(os.urandom(MIB) + bytes(MIB))
        self.cluster.ok(
            "cluster modify --ipolicy-bounds-specs min:disk-size=1,nic-count=0/max:disk-size=100000"
        )
        assert self.cluster.add(WEB, "--no-start", node="node1").code == 0
        self.write()
        self.cluster.ok("backup run", WEB)
        self.cluster.ok("instance snapshot create", WEB, "old")
        services.stop(constants.MASTERD, self.paths)
        self.master = MasterProcess(
            self.cluster.env(), directory / "runs", directory / "master.log", CHECKPOINT_AFTER
        )
        self.begin()

    def begin(self, point: Point | None = None, *, trace: bool = False) -> None:
        assert self.master.start(point, trace=trace, calls=True)

    def close(self) -> None:
        self.master.close()
        self._resources.close()

    @property
    def disk(self) -> Path:
        [path] = self.paths.file_storage.resolve().rglob("*.disk0")
        return path

    def write(self) -> None:
        with self.disk.open("r+b") as stream:
            stream.seek(random.randrange(6 * MIB))
            stream.write(os.urandom(MIB))

    def list_backups(self) -> list[str]:
        return [row[0] for row in self.cluster.cells("backup history -o id", WEB)]

    def prepare(self, name: str) -> Change:
        """Everything as the operation wants it; its opcode."""
        change = dict(OPERATIONS[name])
        self.write()
        while name == "prune" and len(self.list_backups()) < 3:
            self.cluster.ok("backup run", WEB)
            self.write()
        names = [row[0] for row in self.cluster.cells("image list -o name")]
        if name == "image":
            if "tiny" in names:
                self.cluster.ok("image remove tiny")
            upload = self.paths.image_uploads / "tiny.raw"
            upload.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.source, upload)
        if name == "removal" and "kept" not in names:
            self.cluster.ok("image add --format=raw --name kept", str(self.source))
        [[found]] = self.cluster.cells("instance list -o snapshot.names", WEB)
        if name == "create" and "new" in found:
            self.cluster.ok("instance snapshot remove", WEB, "new")
        self.cluster.ok("cluster verify")
        return change

    def run(self, change: Change) -> None:
        """Hand in a job and wait for its end, or that of the master."""
        run_job(self.paths.luxi_socket, change, self.master.died)

    def points(self, name: str) -> list[Point]:
        """The steps of an operation, in the order in which they come."""
        change = self.prepare(name)
        self.master.end(signal.SIGTERM)
        self.begin(trace=True)
        before = len(self.master.labels)
        self.run(change)
        [[status, said]] = self.cluster.cells("job list -o status,opresult")[-1:]
        assert status == "success", said
        counts: Counter[str] = Counter(self.master.labels[:before])
        found: list[Point] = []
        for label in self.master.labels[before:]:
            counts[label] += 1
            if _STEPS.match(label):
                found += [Point(label, counts[label], way) for way in ("before", "after")]
        return found

    def kill_at(self, point: Point, name: str) -> bool:
        change = self.prepare(name)
        before = hashlib.sha256(self.disk.read_bytes()).hexdigest()
        self.master.end(signal.SIGTERM)
        self.begin(point)
        self.run(change)
        self.master.end(signal.SIGKILL)
        killed = self.master.killed_at == str(point)
        self.begin()
        self.repair(point)
        if name not in ("restore", "revert"):
            assert hashlib.sha256(self.disk.read_bytes()).hexdigest() == before, point
        return killed

    def repair(self, point: Point) -> None:
        """Do what verification says; then it has nothing more to say, and nothing is left."""
        told = self.cluster.gnt("cluster verify")
        for command in _NAMED.findall(told.out):
            print(f"{point}: {command}")
            self.cluster.ok(command.replace("restore ", "restore -f "))
        after = self.cluster.gnt("cluster verify")
        assert after.code == 0, (point, told.out, after.out)
        assert "WARNING" not in after.out, (point, after.out)
        wait_for(lambda: not list(self.paths.backup_work.glob("*")), f"{point}: no work is left")
        assert {path.name for path in self.paths.image_uploads.glob("*")} <= {"tiny.raw"}
        left = self.paths.images / ".work"
        assert not left.exists() or not list(left.iterdir()), point
        # each backup that is listed is good, and there is nothing else
        for backup in self.list_backups():
            self.cluster.ok(f"backup verify --backup={backup}", WEB)
        self.cluster.ok("backup run", WEB)
        ids = set(self.list_backups())
        files = [path.name for path in (self.paths.backups / WEB).glob("2*")]
        assert {name[:15] for name in files} == ids, point
        assert len(files) == 3 * len(ids), (point, files)
        # no copy of a disk but those of snapshots
        [[found]] = self.cluster.cells("instance list -o snapshot.names", WEB)
        count = len(re.findall(r"\w+", found))
        assert len(list(self.paths.file_storage.resolve().rglob("*.snap*"))) == count, point
        self.cluster.ok("instance startup", WEB)
        self.cluster.ok("instance shutdown --timeout=0", WEB)


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Steps]:
    made = Steps(tmp_path_factory.mktemp("steps") / "s")
    try:
        yield made
    finally:
        made.close()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", OPERATIONS)
def test_killed_master(steps: Steps, name: str) -> None:
    points = steps.points(name)
    print(f"\n{name}: {len(points)} steps")
    steps.repair(points[-1])
    asked = os.environ.get("BACKUP_STEPS", "")
    if asked != "all":
        points = random.Random(name).sample(points, min(len(points), int(asked or SAMPLE)))
    killed = [steps.kill_at(point, name) for point in points]
    assert sum(killed) * 2 >= len(points)
