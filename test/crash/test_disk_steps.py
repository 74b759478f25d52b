"""The master is killed at every step of operations on disks, and of a reservation's commit.

A step is a call to a node or a write of the configuration. Afterwards configuration and nodes
agree, or ``gnt-cluster verify`` names the difference and the command that repairs it; the commands
it names are run, and then it has nothing to say. What was written to the disks is there all the
time.

``CRASH_POINTS`` says at how many steps of each operation: a number, or ``all``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import re
import shlex
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_run import CHECKPOINT_AFTER
from disk_faults import Point
from load import run_job
from master_process import MasterProcess

sys.path.append(str(Path(__file__).parents[1] / "cluster"))

from local_cluster import copy_cluster

from ganeti import constants
from ganeti.base import services

pytestmark = pytest.mark.long

WEB, DB = "web.example.com", "db.example.com"
#: Reserved, not yet an instance.
SOON = "soon.example.com"
RESERVED = [[DB, "N"], [SOON, "Y"], [WEB, "N"]]
SAMPLE = 1
#: What is killed at; the rest of what the master writes is the job's own story.
_STEPS = re.compile(
    r"serve: (call (blockdev|file_storage|hotplug|disk|instance)_|(write|fsync) .*journal$)"
)

Change = dict[str, object]


def modification(name: str, **values: object) -> Change:
    return {"OP_ID": "OP_INSTANCE_SET_PARAMS", "instance_name": name, **values}


OPERATIONS: dict[str, Change] = {
    "attach": modification(WEB, disks=[["attach", 0, {"name": "data"}]]),
    "detach": modification(DB, disks=[["detach", "kept", {}]]),
    "convert": modification(DB, disk_template="sharedfile"),
    "make": {
        "OP_ID": "OP_DISK_CREATE",
        "disk_template": "file",
        "disk": {"size": 4},
        "nodes": ["node1.example.com"],
    },
    "remove": {"OP_ID": "OP_DISK_REMOVE", "disk_name": "spare"},
    "commit": {
        "OP_ID": "OP_INSTANCE_CREATE",
        "instance_name": SOON,
        "mode": "create",
        "commit": True,
        "disks": [],
        "nics": [],
    },
}


class Steps:
    """One node, a running guest (web), a stopped one (db), and disks with something on them."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._resources = contextlib.ExitStack()
        self.cluster = self._resources.enter_context(copy_cluster(1))
        self.cluster.ok(
            "cluster modify --enabled-disk-templates file,sharedfile,diskless"
            " --ipolicy-bounds-specs min:disk-size=1,nic-count=0/max:disk-size=1000000"
        )
        for name in (WEB, DB):
            assert self.cluster.add(name, node="node1").code == 0
        self.cluster.ok("instance shutdown", DB)
        paths = self.cluster.paths()
        services.stop(constants.MASTERD, paths)
        log = directory / "master.log"
        self.socket = paths.luxi_socket
        self.master = MasterProcess(self.cluster.env(), directory / "runs", log, CHECKPOINT_AFTER)
        self.begin()

    def begin(self, point: Point | None = None, *, trace: bool = False) -> None:
        assert self.master.start(point, trace=trace, calls=True)

    def close(self) -> None:
        self.master.close()
        self._resources.close()

    def prepare(self) -> dict[str, str]:
        """Everything as the operations want it; checksums of the named disks."""
        known = {row[0]: row[1] for row in self.cluster.cells("disk list -o name,instance")}
        for name, owner in known.items():
            if name in ("data", "spare") and owner != "-":
                self.cluster.ok("disk detach", name)
        for name in {"data", "spare", "kept"} - set(known):
            self.cluster.ok(f"disk add -t file -s 4m -n node1 --name {name}")
            self.path(name).write_bytes(os.urandom(4 << 20))
        if known.get("kept") != DB:
            self.cluster.ok("disk attach kept", DB)
        if self.cluster.cells("instance list -o disk_template", DB) != [["file"]]:
            self.cluster.ok("instance modify -t file", DB)
        if self.cluster.cells("instance list -o name,forthcoming") != RESERVED:
            if self.cluster.gnt("instance list --no-headers -o name", SOON).code == 0:
                self.cluster.ok("instance remove -f", SOON)
            self.cluster.ok(
                "instance add --forthcoming -n node1 -o noop -t file --disk 0:size=4M --no-nics"
                " -B memory=64M",
                SOON,
            )
        self.cluster.ok("cluster verify")
        return {name: self.checksum(name) for name in ("data", "kept")}

    def path(self, name: str) -> Path:
        [[text]] = self.cluster.cells("disk list -o path", name)
        return Path(self.cluster.paths().local(text))

    def checksum(self, name: str) -> str:
        return hashlib.sha256(self.path(name).read_bytes()).hexdigest()

    def run(self, change: Change) -> None:
        """Hand in a job and wait for its end, or that of the master."""
        run_job(self.socket, change, self.master.died)

    def points(self, change: Change) -> list[Point]:
        """The steps of an operation, in the order in which they come."""
        self.prepare()
        self.master.end(signal.SIGTERM)
        self.begin(trace=True)
        before = len(self.master.labels)
        self.run(change)
        counts: Counter[str] = Counter(self.master.labels[:before])
        found: list[Point] = []
        for label in self.master.labels[before:]:
            counts[label] += 1
            if _STEPS.match(label):
                found += [Point(label, counts[label], way) for way in ("before", "after")]
        return found

    def kill_at(self, point: Point, change: Change) -> bool:
        """Let the master die at a step, and repair what verification names."""
        checksums = self.prepare()
        self.master.end(signal.SIGTERM)
        self.begin(point)
        self.run(change)
        self.master.end(signal.SIGKILL)
        killed = self.master.killed_at == str(point)
        self.begin()
        self.repair(point)
        assert {name: self.checksum(name) for name in checksums} == checksums, point
        return killed

    def repair(self, point: Point) -> None:
        """Do what verification says; then it has nothing more to say."""
        told = self.cluster.gnt("cluster verify")
        for command in re.findall(r"not needed: (rm /\S+)", told.out):
            Path(self.cluster.paths().local(shlex.split(command)[1])).unlink()
        for command in re.findall(r"gnt-(disk remove \S+)", told.out):
            self.cluster.ok(command.replace("remove", "remove -f"))
        for command in re.findall(r"gnt-(instance (?:add --commit|startup) \S+)", told.out):
            self.cluster.ok(command)
        after = self.cluster.gnt("cluster verify")
        assert after.code == 0, (point, told.out, after.out)
        recorded = {
            Path(self.cluster.paths().local(row[0])).resolve()
            for row in self.cluster.cells("disk list -o path,forthcoming")
            if row[1] == "N"
        }
        root = self.cluster.directory
        assert {path.resolve() for path in root.rglob("*.file.disk*")} == recorded, point


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Steps]:
    made = Steps(tmp_path_factory.mktemp("steps") / "s")
    try:
        yield made
    finally:
        made.close()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", OPERATIONS)
def test_killed_at_a_step(steps: Steps, name: str) -> None:
    change = OPERATIONS[name]
    points = steps.points(change)
    assert len(points) >= 4
    asked = os.environ.get("CRASH_POINTS", "")
    if asked != "all":
        chance = random.Random(name)
        points = chance.sample(points, min(len(points), int(asked or SAMPLE)))
    killed = [steps.kill_at(point, change) for point in points]
    assert sum(killed) * 2 >= len(points)
    # the operation works on what the last crash left
    steps.prepare()
    steps.run(change)
    steps.cluster.ok("cluster verify")
