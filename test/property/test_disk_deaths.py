"""The master dies at every step of an operation on disks: nothing is lost, nothing goes unnamed.

A step is the begin or the end of a call to a node or of a change of the configuration. The next
master finds configuration and nodes in agreement, or ``gnt-cluster verify`` names what differs and
the command that repairs it. The gate tries every second step (``one_process.STRIDE``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from one_process import STRIDE, OneProcess

from ganeti.model.enums import DiskTemplate
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.devices import DiskChange, DiskParams
from ganeti.opcodes.disk import OpDiskCreate, OpDiskRemove
from ganeti.opcodes.enums import DdmFull, InstCreateMode
from ganeti.opcodes.instance import OpInstanceRemove, OpInstanceSetParams
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.opcodes.instance_disks import OpInstanceGrowDisk
from ganeti.opcodes.instance_move import OpInstanceMove

pytestmark = pytest.mark.long

WEB, DB = "web.example.com", "db.example.com"


@pytest.fixture(scope="module")
def prepared_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tree of a cluster: two instances with file disks on node2; one disk is detached."""
    root = tmp_path_factory.mktemp("begun") / "cluster"
    cluster = OneProcess(root)
    for name in (WEB, DB):
        cluster.run(
            OpInstanceCreate(
                instance_name=name,
                mode=InstCreateMode.CREATE,
                os_type="noop",
                start=False,
                disks=[DiskParams(size=1), DiskParams(size=2)],
                nics=[],
                disk_template=DiskTemplate.FILE,
                pnode="node2.example.com",
            )
        )
        for uuid in cluster.instance(name).disks:
            cluster.mark(uuid)
    cluster.run(_modify(DB, DiskChange(DdmFull.DETACH, 1, DiskParams(name="data"))))
    assert cluster.verify() == []
    cluster.close()
    return root


def _modify(name: str, change: DiskChange) -> OpInstanceSetParams:
    return OpInstanceSetParams(instance_name=name, disks=[change])


def _attach(cluster: OneProcess) -> OpCode:
    return _modify(
        WEB, DiskChange(DdmFull.ATTACH, 0, DiskParams(ext={"uuid": cluster.find_free_disk()}))
    )


OPERATIONS: dict[str, Callable[[OneProcess], OpCode]] = {
    "attach": _attach,
    "detach": lambda _c: _modify(WEB, DiskChange(DdmFull.DETACH, 0, DiskParams())),
    "add": lambda _c: _modify(WEB, DiskChange(DdmFull.ADD, 0, DiskParams(size=1))),
    "remove": lambda _c: _modify(WEB, DiskChange(DdmFull.REMOVE, 0, DiskParams())),
    "convert": lambda _c: OpInstanceSetParams(
        instance_name=WEB, disk_template=DiskTemplate.SHAREDFILE
    ),
    "grow": lambda _c: OpInstanceGrowDisk(instance_name=WEB, disk=0, amount=1),
    "move": lambda _c: OpInstanceMove(instance_name=WEB, target_node="node3.example.com"),
    "make a disk": lambda _c: OpDiskCreate(
        disk_template=DiskTemplate.FILE, disk=DiskParams(size=1), nodes=["node3.example.com"]
    ),
    "remove a disk": lambda cluster: OpDiskRemove(disk_name=cluster.find_free_disk()),
    "remove instance": lambda _c: OpInstanceRemove(instance_name=WEB),
}


@pytest.mark.usefixtures("skip_fsync")
@pytest.mark.parametrize("name", OPERATIONS)
def test_the_master_dies_at_every_step(tmp_path: Path, prepared_tree: Path, name: str) -> None:
    steps = 0
    for when, cluster in OneProcess.deaths(prepared_tree, tmp_path, OPERATIONS[name]):
        _inspect(cluster, f"{name}: {when}")
        steps += 1
    assert steps * STRIDE > 3


def _inspect(cluster: OneProcess, when: str) -> None:
    cluster.check_quiet(when)
    reported = "\n".join(cluster.verify())
    known = []
    for uuid, disk in cluster.config.disks.items():
        path = cluster.image(uuid)
        known.append(path.resolve())
        if path.exists() == bool(disk.forthcoming):
            owner = cluster.config.owner(uuid)
            names = [uuid, path.name, *([owner.name] if owner else [])]
            assert any(name in reported for name in names), (when, uuid, reported)
    for path in cluster.images():
        assert path.resolve() in known or path.name in reported, (when, path, reported)
