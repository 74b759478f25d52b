"""Which nodes an instance can be brought to, by what its disks can do."""

from __future__ import annotations

import pytest
from op_samples import config, node, with_group, with_instance

from ganeti import errors
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.model.instance import Instance
from ganeti.ops.planning import disk_reach
from ganeti.ops.planning.disk_reach import Reach

WEB = "web"


def cluster(*templates: DiskTemplate | None, primary: str = "node-2") -> Config:
    """Nodes 1 (the master) to 4; ``web`` is on node2, mirrored disks are on node3 too."""
    of = config(node(2), node(3), node(4))
    master = of.cluster.master_node
    of = with_instance(of, WEB, primary if primary != "node-1" else master)
    [old] = of.disks.values()
    disks = [
        Disk(
            uuid=f"disk-{number}",
            dev_type=template,
            logical_id=("loop", f"/srv/{number}"),
            nodes=(primary, "node-3") if template is DiskTemplate.DRBD else (primary,),
            iv_name=f"disk/{number}",
            size=8,
        )
        for number, template in enumerate(templates)
    ]
    web = base.replace(of.instance(WEB), disks=tuple(disk.uuid for disk in disks))
    puts = [("disks", disk.uuid, disk) for disk in disks] + [("instances", web.uuid, web)]
    return of.apply(puts, [("disks", old.uuid)], None, mtime=3.0)


def web(of: Config) -> Instance:
    return of.instance(WEB)


FILE, PLAIN, DRBD = DiskTemplate.FILE, DiskTemplate.PLAIN, DiskTemplate.DRBD
SHARED, RBD = DiskTemplate.SHAREDFILE, DiskTemplate.RBD


@pytest.mark.parametrize(
    ("templates", "where"),
    [
        ((), Reach.ANYWHERE),
        ((SHARED,), Reach.ANYWHERE),
        ((SHARED, RBD), Reach.ANYWHERE),
        ((DRBD,), Reach.MIRROR),
        ((DRBD, DRBD), Reach.MIRROR),
        ((DRBD, SHARED), Reach.MIRROR),
        ((SHARED, DRBD), Reach.MIRROR),
        ((PLAIN,), Reach.FIXED),
        ((FILE,), Reach.FIXED),
        ((DRBD, PLAIN), Reach.FIXED),
        ((SHARED, FILE), Reach.FIXED),
    ],
)
def test_the_weakest_disk_decides(templates: tuple[DiskTemplate, ...], where: Reach) -> None:
    of = cluster(*templates)
    assert disk_reach.reach(of, web(of)) is where


def names(of: Config) -> list[str]:
    return [found.name.partition(".")[0] for found in disk_reach.list_other_nodes(of, web(of))]


def test_shared_disks_can_be_used_on_all_other_nodes_that_run_instances() -> None:
    of = cluster(SHARED)
    assert names(of) == ["node1", "node3", "node4"]
    third = base.replace(of.nodes["node-3"], vm_capable=False)
    fourth = base.replace(of.nodes["node-4"], offline=True)
    of = of.apply([("nodes", n.uuid, n) for n in (third, fourth)], [], None, mtime=4.0)
    assert names(of) == ["node1", "node4"], "an offline one may come back"


def test_mirrored_disks_can_be_used_on_the_secondary_node() -> None:
    assert names(cluster(DRBD)) == ["node3"]
    assert names(cluster(DRBD, SHARED)) == ["node3"]


def test_local_disks_stay() -> None:
    assert names(cluster(PLAIN)) == []


def target(of: Config, wanted: str | None = None) -> str | None:
    found = disk_reach.target(of, web(of), None if wanted is None else of.nodes[wanted])
    return None if found is None else found.uuid


def test_of_a_mirror_the_target_is_the_secondary_node_whether_it_is_named_or_not() -> None:
    assert target(cluster(DRBD)) == "node-3"
    assert target(cluster(DRBD), "node-3") == "node-3"


def test_another_target_of_a_mirror_is_refused_with_the_command_that_helps() -> None:
    with pytest.raises(errors.OpPrereqError) as caught:
        target(cluster(DRBD), "node-4")
    text, code = caught.value.args
    assert "can only go to its secondary node node3.example.com" in text
    assert "gnt-instance replace-disks --new-secondary node4.example.com web" in text
    assert code == errors.ErrorCode.INVAL


def test_shared_disks_go_where_one_wants_or_where_an_allocator_says() -> None:
    assert target(cluster(SHARED)) is None
    assert target(cluster(SHARED), "node-4") == "node-4"
    with pytest.raises(errors.OpPrereqError, match="is on node node2") as caught:
        target(cluster(SHARED), "node-2")
    assert caught.value.args[1] == errors.ErrorCode.INVAL


@pytest.mark.parametrize(
    ("templates", "told", "untold"),
    [
        ((PLAIN,), ["the disks of instance web (template plain)", "gnt-instance move"], ["detach"]),
        ((PLAIN, PLAIN), ["the disks of instance web", "gnt-instance move"], ["disk/0"]),
        (
            (SHARED, FILE),
            ["disk/1 (file) of instance web", "gnt-instance move"],
            ["disk/0", "the disks"],
        ),
        (
            (DRBD, PLAIN, SHARED),
            ["disk/1 (plain) of instance web", "gnt-instance modify -t drbd", "detach"],
            ["disk/0", "disk/2", "gnt-instance move"],
        ),
        ((PLAIN, DRBD, FILE), ["disk/0 (plain), disk/2 (file) of instance web"], ["disk/1"]),
    ],
)
def test_local_disks_are_named_with_what_can_be_done(
    templates: tuple[DiskTemplate, ...], told: list[str], untold: list[str]
) -> None:
    with pytest.raises(errors.OpPrereqError) as caught:
        target(cluster(*templates))
    text, code = caught.value.args
    assert [part for part in told if part not in text] == []
    assert [part for part in untold if part in text] == []
    assert code == errors.ErrorCode.STATE


def groups(of: Config, *own: str, names: list[str] | None = None) -> list[str]:
    """Names of the groups that ``web``, which is in the groups ``own``, may go to."""
    uuids = [of.group(name).uuid for name in own]
    found = disk_reach.choose_other_groups(of, "instance web is", uuids, names)
    return [of.groups[uuid].name for uuid in found]


def test_an_instance_may_go_to_all_groups_but_its_own() -> None:
    of = with_group(with_group(cluster(DRBD), "rack1"), "rack2")
    assert groups(of, "default") == ["rack1", "rack2"] == groups(of, "default", names=[])
    assert groups(of, "default", "rack1") == ["rack2"]
    assert groups(of, "default", names=["rack2"]) == ["rack2"]
    with pytest.raises(errors.OpPrereqError, match="instance web is in group rack1, default alr"):
        groups(of, "default", "rack1", names=["rack1", "rack2", "default"])
    with pytest.raises(errors.OpPrereqError, match="rack9"):
        groups(of, "default", names=["rack9"])


def test_with_one_group_there_is_no_other() -> None:
    with pytest.raises(errors.OpPrereqError, match="no other node group; gnt-group add") as caught:
        groups(cluster(DRBD), "default")
    assert caught.value.args[1] == errors.ErrorCode.STATE
