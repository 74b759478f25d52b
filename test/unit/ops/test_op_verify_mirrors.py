"""What verification makes of what nodes tell of DRBD, which a test cannot have."""

from __future__ import annotations

from typing import Any

import pytest
from op_samples import Findings, change, config, node, put, with_cluster, with_instance

from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.enums import DiskTemplate, LocalDisk
from ganeti.ops.verification import mirrors
from ganeti.rpc.objects import BlockDevStatus


def mirrored(minor: int = 4, **changes: Any) -> Config:
    """``web1`` with a disk that node2 and node3 mirror; of the cluster DRBD's helper is known."""
    of = with_instance(config(node(2), node(3)), "web1", "node-2", "node-3", disks_active=True)
    place = ("node-2", "node-3", 11000, minor, minor, "secret")
    of = put(of, "disks", base.replace(of.disks["disk-web1"], logical_id=place))
    of = with_cluster(of, drbd_usermode_helper="/bin/true")
    return change(of, **changes)


def drbd_list(
    findings: Findings, of: Config, minors: Any, *, now: Config | None = None, **more: Any
) -> list[str]:
    answers = {"drbd-list": minors, "drbd-helper": [True, "/bin/true"], **more}
    mirrors.node(findings.report, of, now or of, of.nodes["node-2"], answers)
    return findings.lines


def test_drbd_is_asked_for_where_it_is_used() -> None:
    asked = {"drbd-helper", "drbd-list", "drbd-version"}
    assert mirrors.checks(config()) == {}
    assert mirrors.checks(with_cluster(config(), enabled_disk_templates=("drbd",))).keys() == asked
    assert mirrors.checks(mirrored()).keys() == asked


def test_a_minor_that_should_be_active(findings: Findings) -> None:
    assert drbd_list(findings, mirrored(), [4]) == []
    for of in (mirrored(disks_active=False), mirrored(forthcoming=True), mirrored(disks=())):
        assert drbd_list(findings, of, []) == []
    assert drbd_list(findings, mirrored(), [], now=mirrored(disks_active=False)) == []
    assert drbd_list(findings, mirrored(), []) == [
        "ERROR:ENODEDRBD:node:node2.example.com:drbd minor 4 of disk disk-web1 of web1 is not"
        " active"
    ]


def test_a_minor_that_nothing_has(findings: Findings) -> None:
    assert drbd_list(findings, mirrored(), [4, 5, 6], now=mirrored(minor=5)) == [
        "ERROR:ENODEDRBD:node:node2.example.com:unallocated drbd minor 6 is in use; if nothing"
        " needs it: drbdsetup secondary 6 && drbdsetup down resource6"
    ]


def test_a_node_that_cannot_tell_its_minors(findings: Findings) -> None:
    of = mirrored()
    assert drbd_list(findings, of, "no module") == [
        "ERROR:ENODEDRBD:node:node2.example.com:DRBD devices: no module"
    ]
    mirrors.node(findings.report, of, of, of.nodes["node-2"], {})
    mirrors.node(findings.report, of, of, node(9, vm_capable=False), {"drbd-list": "no module"})
    assert len(findings.lines) == 1


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ([True, "/bin/true"], None),
        ("not asked", None),
        ([False, "no module"], "drbd usermode helper: no module"),
        ((True, "/bin/false"), "wrong drbd usermode helper: /bin/false instead of /bin/true"),
    ],
)
def test_the_helper_of_drbd(findings: Findings, answer: Any, text: str | None) -> None:
    line = f"ERROR:ENODEDRBDHELPER:node:node2.example.com:{text}"
    assert drbd_list(findings, mirrored(), [4], **{"drbd-helper": answer}) == (
        [line] if text else []
    )


def test_without_a_helper_none_is_wrong(findings: Findings) -> None:
    of = with_cluster(mirrored(), drbd_usermode_helper=None)
    assert drbd_list(findings, of, [4], **{"drbd-helper": [False, "x"]}) == []


def test_nodes_with_another_version_of_drbd(findings: Findings) -> None:
    nodes = [node(1), node(2), node(3), node(4, vm_capable=False), node(5), node(6)]
    texts = ["9.2.1", "8.4.11", "9.2.1", "7.0", "no module"]
    answers = {item.uuid: {"drbd-version": text} for item, text in zip(nodes, texts)}
    mirrors.versions(findings.report, nodes, answers)
    assert findings.lines == [
        "ERROR:ENODEDRBDVERSION:node:node2.example.com:DRBD 8.4.11, most nodes have 9.2.1"
    ]
    mirrors.versions(findings.report, [nodes[0], *nodes[2:]], answers)
    mirrors.versions(findings.report, nodes, {})
    assert len(findings.lines) == 1


def test_disks_that_are_looked_at() -> None:
    of = mirrored()
    [disk], instance = of.disks.values(), of.instances["inst-web1"]
    assert mirrors.is_looked_at(instance, disk)
    assert not mirrors.is_looked_at(None, disk)
    assert not mirrors.is_looked_at(base.replace(instance, disks_active=False), disk)
    assert not mirrors.is_looked_at(instance, base.replace(disk, dev_type=DiskTemplate.FILE))


def copy(findings: Findings, answer: tuple[bool, Any], number: int = 2) -> list[str]:
    of = mirrored()
    [disk], instance = of.disks.values(), of.instances["inst-web1"]
    mirrors.state(findings.report, of.nodes[f"node-{number}"], instance, disk, answer)
    return findings.lines


def degraded(local: int, **more: Any) -> tuple[bool, BlockDevStatus]:
    return True, BlockDevStatus(dev_path="/dev/drbd4", is_degraded=True, ldisk_status=local, **more)


_DISK = "EINSTANCEFAULTYDISK:instance:web1:disk/0 on node"


@pytest.mark.parametrize(
    ("answer", "number", "line"),
    [
        ((False, "timeout"), 2, f"ERROR:{_DISK} node2.example.com: no state: timeout"),
        (
            degraded(LocalDisk.FAULTY),
            2,
            f"ERROR:{_DISK} node2.example.com is degraded; local disk state is 'faulty': the copy"
            " on this node failed or is out of date; gnt-instance replace-disks -p web1 recreates"
            " it",
        ),
        (
            degraded(LocalDisk.FAULTY),
            3,
            f"ERROR:{_DISK} node3.example.com is degraded; local disk state is 'faulty': the copy"
            " on this node failed or is out of date; gnt-instance replace-disks -s web1 recreates"
            " it",
        ),
        (
            degraded(LocalDisk.OKAY),
            2,
            f"ERROR:{_DISK} node2.example.com is degraded; local disk state is 'ok': this copy is"
            " complete, the one on the other node is away or is not",
        ),
        (
            degraded(LocalDisk.SYNCHRONISING, sync_percent=12.34),
            2,
            f"WARNING:{_DISK} node2.example.com is degraded; local disk state is 'syncing', 12.3%"
            " are synchronised",
        ),
        (
            degraded(LocalDisk.UNKNOWN),
            2,
            f"ERROR:{_DISK} node2.example.com is degraded; local disk state is 'unknown'",
        ),
    ],
)
def test_a_copy_that_is_bad(
    findings: Findings, answer: tuple[bool, Any], number: int, line: str
) -> None:
    assert copy(findings, answer, number) == [line]
    assert findings.report.ok == line.startswith("WARNING")


def test_a_copy_that_is_good(findings: Findings) -> None:
    assert copy(findings, (True, BlockDevStatus(dev_path="/dev/drbd4"))) == []


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        (degraded(LocalDisk.OKAY), degraded(LocalDisk.OKAY), True),
        (degraded(LocalDisk.OKAY), degraded(LocalDisk.FAULTY), False),
        (degraded(LocalDisk.OKAY), (False, "timeout"), False),
    ],
)
def test_two_complete_copies_that_are_not_connected_are_told_apart(
    findings: Findings, one: tuple[bool, Any], other: tuple[bool, Any], apart: bool
) -> None:
    of = mirrored()
    [disk], instance, item = of.disks.values(), of.instances["inst-web1"], of.nodes["node-2"]
    seen = mirrors.find_apart([(disk, one), (disk, other)])
    assert seen == ({disk.uuid} if apart else set())
    mirrors.state(findings.report, item, instance, disk, one, apart=disk.uuid in seen)
    [line] = findings.lines
    assert ("split brain" in line) == apart
