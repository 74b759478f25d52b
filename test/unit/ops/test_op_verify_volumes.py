"""What verification makes of volume groups and volumes that nodes tell."""

from __future__ import annotations

from typing import Any

import pytest
from op_samples import Findings, config, node, put, with_cluster, with_web1

from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.enums import DiskTemplate
from ganeti.ops.verification import storage

# volumes ------------------------------------------------------------------------------------------


def volume(of: Config, name: str = "web1.disk0", size: int = 2048, **changes: Any) -> Config:
    disk = base.replace(
        of.disks["disk-web1"],
        dev_type=DiskTemplate.PLAIN,
        logical_id=("xenvg", name),
        size=size,
        **changes,
    )
    return with_cluster(put(of, "disks", disk), volume_group_name="xenvg")


def exclusive(of: Config) -> Config:
    return with_cluster(of, ndparams={**of.cluster.ndparams, "exclusive_storage": True})


def physical(name: str = "/dev/sda", group: str = "xenvg", size: int = 1000, flags: str = "a--"):
    return {"name": name, "vg_name": group, "size": size, "attributes": flags}


def lvm(findings: Findings, of: Config, **answers: Any) -> list[str]:
    given = {key.replace("_", "-"): value for key, value in answers.items()}
    storage.node(findings.report, of, of.nodes["node-2"], given)
    return [line.removeprefix("ERROR:ENODELVM:node:node2.example.com:") for line in findings.lines]


def test_lvm_is_asked_for_where_it_is_used() -> None:
    nodes = [node(2)]
    assert storage.checks(with_web1(), nodes) == {}
    asked = storage.checks(volume(with_web1()), nodes)
    assert asked == {"vglist": None, "lvlist": ["xenvg"], "pvlist": ["xenvg"]}
    assert storage.checks(exclusive(volume(with_web1())), nodes)["exclusive-pvs"] == ["xenvg"]
    enabled = with_cluster(
        config(), volume_group_name="xenvg", enabled_disk_templates=("file", "drbd")
    )
    assert storage.checks(enabled, nodes) == asked
    unused = with_cluster(config(), volume_group_name="xenvg", enabled_disk_templates=("file",))
    assert storage.checks(unused, nodes) == {}


def test_volume_groups_of_a_node(findings: Findings) -> None:
    of = volume(with_web1())
    storage.node(findings.report, of, of.nodes["node-2"], {})
    assert lvm(findings, of, vglist={"xenvg": 1}, pvlist=[physical()]) == []
    assert lvm(findings, of, vglist="no lvm") == ["volume groups: no lvm"]


def test_a_volume_group_that_is_missing(findings: Findings) -> None:
    assert lvm(findings, volume(with_web1()), vglist={"other": 1}, pvlist="no answer") == [
        "there is no volume group 'xenvg'",
        "physical volumes: no answer",
    ]
    other = with_cluster(volume(with_web1()), volume_group_name=None)
    assert len(lvm(findings, other, vglist={"other": 1}, pvlist=[])) == 2


def test_physical_volumes_that_are_wrong(findings: Findings) -> None:
    listed = [physical("/dev/a:b"), physical(flags="a-m"), physical(flags="a-m"), physical()]
    shared = {"exclusive_pvs": [["/dev/sda", ["v1", "v2"]]]}
    assert lvm(findings, volume(with_web1()), vglist={"xenvg": 1}, pvlist=listed, **shared) == [
        "physical volume /dev/a:b of xenvg: LVM takes no ':' in names of disks",
        "volume group xenvg lost 2 physical volumes; see gnt-node repair-storage"
        " node2.example.com lvm-vg xenvg",
    ]


def test_physical_volumes_are_not_shared_where_storage_is_exclusive(findings: Findings) -> None:
    of, good = exclusive(volume(with_web1())), {"vglist": {"xenvg": 1}, "pvlist": [physical()]}
    assert lvm(findings, of, **good) == []
    assert lvm(findings, of, **good, exclusive_pvs="no answer") == []
    assert lvm(findings, of, **good, exclusive_pvs=[["/dev/sda", ["v1", "v2"]]]) == [
        "physical volume /dev/sda is shared by the volumes v1, v2"
    ]


def sizes(findings: Findings, of: Config, *each: Any) -> list[str]:
    answers = {f"node-{number}": {"pvlist": item} for number, item in enumerate(each, 2)}
    storage.group_sizes(findings.report, of, "default", of.nodes.values(), answers)
    return findings.lines


def test_physical_volumes_are_alike_where_storage_is_exclusive(findings: Findings) -> None:
    of = exclusive(with_web1())
    assert sizes(findings, of) == []
    assert sizes(findings, of, [physical(size=980)], [physical(size=1000)]) == []
    assert sizes(findings, with_web1(), [physical(size=1)], [physical(size=1000)]) == []
    assert sizes(findings, of, [physical(size=1, flags="a-m")], [physical(size=1000)]) == []
    assert sizes(findings, of, "no answer", [physical(size=1000)]) == []
    assert sizes(findings, of, [physical(size=979), physical(size=990)], [physical(size=1000)]) == [
        "ERROR:EGROUPDIFFERENTPVSIZE:group:default:physical volumes have from 979 to 1000 MiB;"
        " exclusive storage needs them alike"
    ]


def logical(
    findings: Findings,
    of: Config,
    listed: Any,
    *,
    now: Config | None = None,
    busy: tuple[str, ...] = (),
) -> list[str]:
    answers = {"node-2": {"lvlist": listed}}
    storage.logical(findings.report, of, now or of, of.nodes.values(), answers, busy)
    return findings.lines


def test_a_volume_that_is_good(findings: Findings) -> None:
    assert (
        logical(findings, volume(with_web1()), {"xenvg/web1.disk0": ["2048.00", False, True]}) == []
    )
    assert logical(findings, volume(with_web1()), None) == []
    assert (
        logical(findings, volume(with_web1()), {"xenvg/web1.disk0": ["2048.00", True, False]}) == []
    )


@pytest.mark.parametrize(
    ("listed", "code", "text"),
    [
        (
            {},
            "EINSTANCEMISSINGDISK",
            " is missing: gnt-instance recreate-disks web1 recreates it, empty",
        ),
        (
            {"xenvg/web1.disk0": ["2047.6", False, True]},
            "EINSTANCEFAULTYDISK",
            " has 2048 MiB instead of 2048 MiB",
        ),
        (
            {"xenvg/web1.disk0": ["1000", True, True]},
            "EINSTANCEFAULTYDISK",
            " has 1000 MiB instead of 2048 MiB",
        ),
        ({"xenvg/web1.disk0": ["4096", True, True]}, "EINSTANCEFAULTYDISK", " is not active"),
    ],
)
def test_a_volume_that_is_bad(findings: Findings, listed: Any, code: str, text: str) -> None:
    of = volume(with_web1(disks_active=True))
    assert logical(findings, of, listed) == [
        f"ERROR:{code}:instance:web1:volume xenvg/web1.disk0 of disk/0 on node"
        f" node2.example.com{text}"
    ]


def test_a_volume_of_a_disk_without_instance(findings: Findings) -> None:
    of = volume(with_web1(disks=(), disks_active=True), iv_name="")
    assert logical(findings, of, {"xenvg/web1.disk0": ["2048", True, False]}) == []
    assert logical(findings, of, {}) == [
        "ERROR:EINSTANCEMISSINGDISK:disk:disk-web1:volume xenvg/web1.disk0 of it on node"
        " node2.example.com is missing: gnt-disk remove disk-web1 forgets it"
    ]


def test_volumes_that_are_reserved_or_removed_meanwhile_are_not_missing(findings: Findings) -> None:
    assert logical(findings, volume(with_web1(forthcoming=True)), {}) == []
    assert logical(findings, volume(with_web1(), forthcoming=True), {}) == []
    assert logical(findings, volume(with_web1()), {}, now=volume(with_web1(), "other")) == []


def test_volumes_that_are_not_known(findings: Findings) -> None:
    of = volume(with_web1())
    of = with_cluster(of, reserved_lvs=("xenvg/root.*",))
    good = {"xenvg/web1.disk0": ["2048", False, True]}
    names = ("xenvg/z", "xenvg/a", "xenvg/rootfs", "my/xenvg/root")
    other = {name: ["1", False, True] for name in names}
    assert logical(findings, of, {**good, **other}, busy=("node-2",)) == []
    assert logical(findings, of, {**good, **other}, now=volume(of, "a")) == [
        f"ERROR:ENODEORPHANLV:node:node2.example.com:volume {name} is unknown; if its content is"
        f" not needed: lvremove {name}"
        for name in ("my/xenvg/root", "xenvg/z")
    ]


def test_a_node_that_cannot_tell_its_volumes(findings: Findings) -> None:
    assert logical(findings, volume(with_web1()), "no lvm") == [
        "ERROR:ENODELVM:node:node2.example.com:logical volumes: no lvm"
    ]
