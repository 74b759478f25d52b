"""The daemon of a node dies at every call of an operation: the job ends, and nothing goes unnamed.

Each operation on instances and disks, at each of its calls to a node (in the gate: at each second
one; ``CRASH_POINTS=all``: at all), with the work of that call done or not. The job comes through or
fails with a message that names the node. When the daemon runs again no instance runs twice, no data
is lost, configuration and nodes agree or ``gnt-cluster verify`` names what differs, and the
instance can be ended and started, or be removed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from one_process import OneProcess

from ganeti import errors
from ganeti.model.enums import AdminState, DiskTemplate
from ganeti.model.instance import Instance
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.devices import DiskChange, DiskParams, DiskRecreation
from ganeti.opcodes.disk import OpDiskCreate, OpDiskRemove
from ganeti.opcodes.enums import DdmFull, InstCreateMode, RebootType
from ganeti.opcodes.instance import (
    OpInstanceReboot,
    OpInstanceReinstall,
    OpInstanceRemove,
    OpInstanceRename,
    OpInstanceSetParams,
    OpInstanceShutdown,
    OpInstanceStartup,
)
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.opcodes.instance_disks import (
    OpInstanceActivateDisks,
    OpInstanceDeactivateDisks,
    OpInstanceGrowDisk,
    OpInstanceRecreateDisks,
)
from ganeti.opcodes.instance_move import OpInstanceFailover, OpInstanceMigrate, OpInstanceMove
from ganeti.ops.steps.storage import copy_progress

pytestmark = pytest.mark.long

#: Running on a shared disk; running on a disk of its node; stopped, with two disks of its node.
FAR, NEAR, DOWN = "far.example.com", "near.example.com", "down.example.com"
NEW = "new.example.com"
HOME, OTHER = "node2.example.com", "node3.example.com"


def _create(name: str, template: DiskTemplate, disks: int, *, start: bool) -> OpInstanceCreate:
    return OpInstanceCreate(
        instance_name=name,
        mode=InstCreateMode.CREATE,
        os_type="noop",
        start=start,
        nics=[],
        disks=[DiskParams(size=1)] * disks,
        disk_template=template,
        pnode=HOME,
    )


@pytest.fixture(scope="module")
def prepared_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tree of a cluster with the three instances on node2, and a disk of nobody."""
    root = tmp_path_factory.mktemp("begun") / "cluster"
    cluster = OneProcess(root)
    cluster.run(_create(FAR, DiskTemplate.SHAREDFILE, 1, start=True))
    cluster.run(_create(NEAR, DiskTemplate.FILE, 1, start=True))
    cluster.run(_create(DOWN, DiskTemplate.FILE, 2, start=False))
    cluster.run(
        OpDiskCreate(disk_template=DiskTemplate.FILE, disk=DiskParams(size=1), nodes=[HOME])
    )
    for uuid in cluster.config.disks:
        cluster.mark(uuid)
    assert cluster.verify() == []
    cluster.close()
    return root


def _disks(name: str, change: DdmFull, index: int = 0, **params: object) -> OpInstanceSetParams:
    row = DiskChange(change, index, DiskParams(**params))  # type: ignore[arg-type]
    return OpInstanceSetParams(instance_name=name, disks=[row])


def _recreate(cluster: OneProcess) -> OpCode:
    cluster.image(cluster.instance(DOWN).disks[1]).unlink()
    return OpInstanceRecreateDisks(instance_name=DOWN, disks=[DiskRecreation(1)])


OPERATIONS: dict[str, Callable[[OneProcess], OpCode]] = {
    "add": lambda _c: _create(NEW, DiskTemplate.FILE, 2, start=True),
    "startup": lambda _c: OpInstanceStartup(instance_name=DOWN),
    "shutdown": lambda _c: OpInstanceShutdown(instance_name=NEAR),
    "reboot": lambda _c: OpInstanceReboot(instance_name=NEAR, reboot_type=RebootType.HARD),
    "reinstall": lambda _c: OpInstanceReinstall(instance_name=DOWN),
    "rename": lambda _c: OpInstanceRename(
        instance_name=DOWN, new_name=NEW, name_check=False, ip_check=False
    ),
    "remove": lambda _c: OpInstanceRemove(instance_name=NEAR),
    "failover": lambda _c: OpInstanceFailover(instance_name=FAR, target_node=OTHER),
    "migrate": lambda _c: OpInstanceMigrate(instance_name=FAR, target_node=OTHER),
    "move": lambda _c: OpInstanceMove(instance_name=NEAR, target_node=OTHER),
    "move live": lambda _c: OpInstanceMove(instance_name=NEAR, target_node=OTHER, live=True),
    "activate-disks": lambda _c: OpInstanceActivateDisks(instance_name=DOWN),
    "deactivate-disks": lambda _c: OpInstanceDeactivateDisks(instance_name=DOWN),
    "recreate-disks": _recreate,
    "grow-disk": lambda _c: OpInstanceGrowDisk(instance_name=NEAR, disk=0, amount=1),
    "add a disk": lambda _c: _disks(NEAR, DdmFull.ADD, size=1),
    "remove a disk": lambda _c: _disks(DOWN, DdmFull.REMOVE),
    "detach": lambda _c: _disks(DOWN, DdmFull.DETACH),
    "attach": lambda c: _disks(DOWN, DdmFull.ATTACH, ext={"uuid": c.find_free_disk()}),
    "convert": lambda _c: OpInstanceSetParams(
        instance_name=DOWN, disk_template=DiskTemplate.SHAREDFILE
    ),
    "make a disk of nobody": lambda _c: OpDiskCreate(
        disk_template=DiskTemplate.FILE, disk=DiskParams(size=1), nodes=[OTHER]
    ),
    "remove a disk of nobody": lambda c: OpDiskRemove(disk_name=c.find_free_disk()),
}
#: The table of outcomes is at the end of this page; UPDATE_RECORDED=1 CRASH_POINTS=all writes it.
PAGE = Path(__file__).parents[2] / "doc" / "reference" / "faults.md"
_TITLE = "\n## The daemon of a node is killed at any call\n"
_TEXT = """
Each operation on disks of the templates `file` and `sharedfile` (`migrate` and `failover`), the
daemon killed at each of its calls to a node, before or after it has done that work
(`test/property/test_daemon_deaths.py`; `make test-crash` tries them all). In every case: an
instance never runs twice, what was on disks that were to stay is still there, and `gnt-cluster
verify` names files without a disk and disks without a file. Recovery in every case: the daemon
started again; then the instance can be stopped, started and removed as usual, after `gnt-instance
migrate --cleanup` when it was on its way to another node.

| operation | deaths | job comes through | job fails and names the node |
| --- | ---: | ---: | ---: |
"""
#: What ends data on purpose.
ENDS_DATA = {"remove", "remove a disk", "remove a disk of nobody", "recreate-disks"}


@pytest.fixture(scope="module")
def outcomes() -> Iterator[Counter[tuple[str, bool]]]:
    """How often each operation failed or did not."""
    seen: Counter[tuple[str, bool]] = Counter()
    yield seen
    if os.environ.get("UPDATE_RECORDED"):
        rows = (
            f"| {name} | {seen[name, True] + seen[name, False]} | {seen[name, False]} |"
            f" {seen[name, True]} |\n"
            for name in OPERATIONS
        )
        before = PAGE.read_text(encoding="utf-8").partition(_TITLE)[0]
        PAGE.write_text(before + _TITLE + _TEXT + "".join(rows), encoding="utf-8")


@pytest.mark.usefixtures("skip_fsync", "skip_patience")
@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_node_daemon_dies_at_every_call(
    tmp_path: Path,
    prepared_tree: Path,
    outcomes: Counter[tuple[str, bool]],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    done: bool,
) -> None:
    monkeypatch.setattr(copy_progress, "RETRY", 0.0)
    calls = 0
    targets: set[str] = set()
    before: dict[str, Instance] = {}

    def make(cluster: OneProcess) -> OpCode:
        op = OPERATIONS[name](cluster)
        before.update(cluster.config.instances)
        targets.add(str(getattr(op, "instance_name", "")))
        return op

    for call, cluster, failed in OneProcess.daemon_deaths(prepared_tree, tmp_path, make, done=done):
        when = f"{name}: dead {'after' if done else 'before'} {call}"
        if failed is not None:
            assert "node" in errors.text(failed), (when, failed)
        _check_cluster(cluster, when, keeps_data=name not in ENDS_DATA)
        _go_on(cluster, when, untouched=[v for v in before.values() if v.name not in targets])
        outcomes[name, failed is not None] += 1
        calls += 1
    assert calls > 0


def _check_cluster(cluster: OneProcess, when: str, *, keeps_data: bool) -> None:
    assert cluster.problems == [], when
    assert cluster.held_locks() == [], when
    for name in (FAR, NEAR, DOWN, NEW):
        assert len(cluster.running(name)) <= 1, (when, name)
    reported = "\n".join(cluster.verify())
    known = []
    for uuid in cluster.config.disks:
        path = cluster.image(uuid)
        known.append(path.resolve())
        owner = cluster.config.owner(uuid)
        if not path.exists():
            names = [uuid, path.name, *([owner.name] if owner else [])]
            assert any(word in reported for word in names), (when, uuid, reported)
    for path in cluster.images():
        assert path.resolve() in known or path.name in reported, (when, path, reported)
    if keeps_data:
        first = sorted(path.read_bytes()[:36] for path in cluster.images())
        assert len([mark for mark in first if mark.strip(b"\0")]) >= 5, when


def _go_on(cluster: OneProcess, when: str, untouched: list[Instance]) -> None:
    """What a user does next: settle a move, end what runs, start it, and remove it."""
    for instance in list(cluster.config.instances.values()):
        name = instance.name
        if instance in untouched:
            continue
        if name in (FAR, NEAR):
            cluster.run(OpInstanceMigrate(instance_name=name, cleanup=True))
        cluster.run(OpInstanceShutdown(instance_name=name))
        assert cluster.running(name) == [], when
        if all(cluster.image(uuid).exists() for uuid in instance.disks):
            cluster.run(OpInstanceStartup(instance_name=name))
            found = cluster.instance(name)
            home = cluster.config.nodes[found.primary_node].name.partition(".")[0]
            assert cluster.running(name) == [home], when
            assert found.admin_state is AdminState.UP
        cluster.run(OpInstanceRemove(instance_name=name, ignore_failures=True))
        assert cluster.running(name) == [], when
    assert cluster.problems == [], when
