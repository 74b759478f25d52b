"""Nodes that a request names itself, in a cluster of one process."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from one_process import OneProcess

from ganeti import errors
from ganeti.model.enums import DiskTemplate
from ganeti.opcodes.devices import DiskChange, DiskParams
from ganeti.opcodes.disk import OpDiskSetParams
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.group import OpGroupSetParams
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.opcodes.instance_create import OpInstanceCreate, OpInstanceMultiAlloc
from ganeti.ops.instance.multi_alloc import InstanceMultiAlloc

WEB = "web.example.com"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[OneProcess]:
    made = OneProcess(tmp_path / "cluster", count=2)
    yield made
    made.close()


def create(name: str = WEB, spindles: int | None = None, **given: Any) -> OpInstanceCreate:
    return OpInstanceCreate(
        instance_name=name,
        mode=InstCreateMode.CREATE,
        nics=[],
        disks=[DiskParams(size=8, spindles=spindles)],
        os_type="noop",
        disk_template=DiskTemplate.FILE,
        start=False,
        **given,
    )


def test_many_instances_on_named_nodes_need_no_allocator(
    cluster: OneProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted: list[OpInstanceCreate] = []
    assert cluster.config.cluster.default_iallocator == ""
    started = InstanceMultiAlloc.run

    def run(self: InstanceMultiAlloc) -> dict[str, Any]:
        def submit(jobs: list[list[OpInstanceCreate]]) -> list[int]:
            submitted.extend(op for [op] in jobs)
            return list(range(len(jobs)))

        monkeypatch.setattr(self.ctx.job, "submit", submit)
        return started(self)

    monkeypatch.setattr(InstanceMultiAlloc, "run", run)
    nodes = {"a.example.com": "node2.example.com", "b.example.com": "node1.example.com"}
    result = cluster.run(
        OpInstanceMultiAlloc(instances=[create(name, pnode=node) for name, node in nodes.items()])
    )
    assert result == {
        "jobs": [[True, 0], [True, 1]],
        "allocatable": list(nodes),
        "failed": [],
        "refusals": {},
    }
    assert {op.instance_name: op.pnode for op in submitted} == nodes


@pytest.mark.parametrize(
    ("first", "second", "more", "text"),
    [
        ({"pnode": "node1"}, {}, {}, r"b\.example\.com: no node is named"),
        ({"pnode": "node1"}, {"snode": "node1"}, {}, r"b\.example\.com: no node is named"),
        ({"pnode": "node1"}, {"pnode": "node2"}, {"iallocator": "x"}, "nodes or an allocator"),
        ({"pnode": "node1"}, {"pnode": "node9"}, {}, "node9"),
        ({"iallocator": "x"}, {}, {}, "name the allocator once"),
        ({}, {}, {}, "has no default one"),
    ],
)
def test_half_named_nodes_are_refused(
    cluster: OneProcess,
    first: dict[str, Any],
    second: dict[str, Any],
    more: dict[str, Any],
    text: str,
) -> None:
    both = [create("a.example.com", **first), create("b.example.com", **second)]
    with pytest.raises(errors.OpPrereqError, match=text):
        cluster.run(OpInstanceMultiAlloc(instances=both, **more))


def test_spindles_count_with_exclusive_storage_only(cluster: OneProcess) -> None:
    cluster.run(create(pnode="node1.example.com"))
    [disk] = cluster.instance(WEB).disks
    before = cluster.config.disks[disk]
    new = DiskChange.from_wire(["add", -1, {"size": 8, "spindles": 2}])
    old = DiskChange.from_wire(["modify", 0, {"spindles": 2}])
    for op in (
        OpInstanceSetParams(instance_name=WEB, disks=[new]),
        OpInstanceSetParams(instance_name=WEB, disks=[old]),
        OpDiskSetParams(disk_name=disk, spindles=2),
        create("a.example.com", pnode="node1.example.com", spindles=1),
    ):
        with pytest.raises(errors.OpPrereqError, match="exclusive storage is not active"):
            cluster.run(op)
    assert cluster.config.disks == {disk: before}


def test_spindles_of_reservations_count_with_exclusive_storage_only(cluster: OneProcess) -> None:
    def reserve(name: str, spindles: int | None = None, **given: Any) -> None:
        cluster.run(create(name, spindles, forthcoming=True, **given))

    reserve("placed.example.com", pnode="node1.example.com")
    reserve("open.example.com")
    add = DiskChange.from_wire(["add", -1, {"size": 8, "spindles": 2}])
    modify = DiskChange.from_wire(["modify", 0, {"spindles": 2}])
    refusal = pytest.raises(errors.OpPrereqError, match="exclusive storage is not active")
    for name in ("placed.example.com", "open.example.com"):
        for change in (add, modify):
            with refusal:
                cluster.run(OpInstanceSetParams(instance_name=name, disks=[change]))
    for more in ({}, {"pnode": "node1.example.com"}, {"group_name": "default"}):
        with refusal:
            reserve("a.example.com", 1, **more)
    assert [disk.spindles for disk in cluster.config.disks.values()] == [None, None]

    cluster.run(OpGroupSetParams(group_name="default", ndparams={"exclusive_storage": True}))
    reserve("somewhere.example.com", 1)


def test_a_stopped_instance_whose_files_were_copied_gets_its_new_primary_node(
    cluster: OneProcess,
) -> None:
    cluster.run(create(pnode="node1.example.com"))
    [disk] = cluster.instance(WEB).disks
    cluster.mark(disk)
    source = cluster.image(disk)
    move = OpInstanceSetParams(instance_name=WEB, pnode="node2.example.com")
    with pytest.raises(errors.OpPrereqError, match="has no copy of the disks"):
        cluster.run(move)
    relative = source.relative_to(cluster.paths["node1"].root)
    target = cluster.paths["node2"].root / relative
    target.parent.mkdir(parents=True)
    shutil.move(source, target)
    cluster.run(move)
    assert cluster.instance(WEB).primary_node == cluster.node(2).uuid
    assert cluster.marked(disk)
    assert cluster.problems == []
