"""What new disks will look like: templates, nodes, directories, keys, names and minors."""

from __future__ import annotations

from typing import Any

import pytest
from op_samples import config, context, node, put, with_cluster

from ganeti import errors
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskMode, DiskTemplate
from ganeti.opcodes.devices import DiskParams
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.planning import disk_layout
from ganeti.ops.planning.disk_layout import Layout

ALL = ("plain", "drbd", "file", "sharedfile", "rbd", "ext", "diskless")
TWO = ("node-2", "node-3")


def cluster(*templates: str, **more: Any) -> Config:
    of = config(node(2), node(3), node(4))
    values = {"volume_group_name": "xenvg", "file_storage_dir": "/srv/files", **more}
    return with_cluster(of, enabled_disk_templates=templates or ALL, **values)


def create(**params: Any) -> OpInstanceCreate:
    values = {"mode": InstCreateMode.CREATE, "disks": [], "nics": [], **params}
    return OpInstanceCreate(instance_name="web1", **values)


def plan_disk(
    kind: str, *nodes: str, of: Config | None = None, index: int = 0, **keys: Any
) -> Disk:
    """A planned disk of a template; sized unless ``size`` says otherwise."""
    ctx = context(cluster() if of is None else of)
    layout = disk_layout.layout(ctx, "web1", DiskTemplate(kind), nodes or ("node-2",))
    return disk_layout.disk(ctx, layout, index, DiskParams(**{"size": 1024, **keys}))


def expect_refusal(text: str, kind: errors.ErrorCode = errors.ErrorCode.INVAL) -> Any:
    return pytest.raises(
        errors.OpPrereqError, match=text, check=lambda caught: caught.args[1] == kind
    )


# templates ----------------------------------------------------------------------------------------


def test_the_first_template_of_the_cluster_is_the_default() -> None:
    disk = [DiskParams(size=1024)]
    ctx = context(cluster("file", "plain"))
    assert disk_layout.template(ctx, create(disks=disk)) is DiskTemplate.FILE
    assert disk_layout.template(ctx, create()) is DiskTemplate.FILE
    ctx = context(cluster("file", "plain", "diskless"))
    assert disk_layout.template(ctx, create(disks=disk)) is DiskTemplate.FILE
    assert disk_layout.template(ctx, create()) is DiskTemplate.DISKLESS


def test_a_template_that_is_asked_for_must_be_enabled() -> None:
    ctx = context(cluster("file", "drbd"))
    asked = create(disk_template=DiskTemplate.DRBD)
    assert disk_layout.template(ctx, asked) is DiskTemplate.DRBD
    with expect_refusal("disk template plain is not enabled in this cluster; enabled: drbd, file"):
        disk_layout.template(ctx, create(disk_template=DiskTemplate.PLAIN))


def test_a_disk_has_a_template_of_disks() -> None:
    ctx = context(cluster("file", "diskless"))
    assert disk_layout.template_of_disk(ctx, "file", "disk 1") is DiskTemplate.FILE
    with expect_refusal("disk 1 cannot have the template diskless"):
        disk_layout.template_of_disk(ctx, "diskless", "disk 1")


def test_a_diskless_instance_has_no_disks() -> None:
    ctx = context(cluster())
    layout = disk_layout.layout(ctx, "web1", DiskTemplate.DISKLESS, TWO)
    assert layout == Layout("web1", DiskTemplate.DISKLESS, TWO)
    assert disk_layout.disks(ctx, layout, []) == []
    with expect_refusal("a diskless instance has no disks; omit --disk"):
        disk_layout.disks(ctx, layout, [DiskParams(size=1)])
    disk_layout.check_diskless(DiskTemplate.FILE, [DiskParams(size=1)])
    disk_layout.check_diskless(None, [DiskParams(size=1)])


# nodes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "nodes", "text"),
    [
        ("drbd", ("node-2",), "drbd needs a secondary node; name it as in --node node1:node2"),
        ("drbd", ("node-2", "node-2"), "the secondary node cannot be the primary node"),
        ("plain", TWO, "plain keeps no copy on a second node; omit the secondary node"),
        ("drbd", (*TWO, "node-4"), "keeps no copy on a second node"),
        ("sharedfile", TWO, "sharedfile keeps no copy on a second node"),
    ],
)
def test_a_wrong_number_of_nodes(kind: str, nodes: tuple[str, ...], text: str) -> None:
    with expect_refusal(text):
        disk_layout.layout(context(cluster()), "web1", DiskTemplate(kind), nodes)


def test_the_nodes_of_a_layout_are_in_order() -> None:
    found = disk_layout.layout(context(cluster()), "web1", DiskTemplate.DRBD, ["node-3", "node-2"])
    assert found == Layout("web1", DiskTemplate.DRBD, ("node-3", "node-2"), "loop", "")


# directories --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "found"),
    [
        (None, "/srv/files"),
        ("", "/srv/files"),
        ("a/b", "/srv/files/a/b"),
        ("a..b", "/srv/files/a..b"),
    ],
)
def test_files_lie_below_the_directory_of_the_cluster(part: str | None, found: str) -> None:
    layout = disk_layout.layout(
        context(cluster()),
        "web1",
        DiskTemplate.FILE,
        ["node-2"],
        file_driver="blktap",
        file_storage_dir=part,
    )
    assert (layout.file_driver, layout.file_dir) == ("blktap", found)


@pytest.mark.parametrize("part", ["/etc", "..", "a/../../etc", "a\0b"])
def test_a_directory_outside_of_it_is_refused(part: str) -> None:
    with expect_refusal("must be a path below /srv/files, without '..'"):
        disk_layout.layout(
            context(cluster()), "web1", DiskTemplate.FILE, ["node-2"], file_storage_dir=part
        )


@pytest.mark.parametrize("given", [{"file_driver": "loop"}, {"file_storage_dir": "a"}])
def test_volumes_have_no_directory(given: dict[str, str]) -> None:
    with expect_refusal(
        "a file storage directory or driver makes no sense for disk template plain"
    ):
        disk_layout.layout(context(cluster()), "web1", DiskTemplate.PLAIN, ["node-2"], **given)


def test_a_cluster_without_a_directory_for_the_template() -> None:
    ctx = context(cluster(shared_file_storage_dir=""))
    with expect_refusal(
        "the cluster has no directory for template sharedfile", errors.ErrorCode.STATE
    ):
        disk_layout.layout(ctx, "web1", DiskTemplate.SHAREDFILE, ["node-2"])


def test_files_in_a_directory_that_exists() -> None:
    before = Layout("web1", DiskTemplate.FILE, ("node-2",), "loop", "/srv/files")
    after = disk_layout.move_into_directory(before, "/srv/files/old/web0")
    assert (after.instance, after.file_dir) == ("web0", "/srv/files/old")
    assert (after.nodes, after.kind) == (before.nodes, before.kind)


# disks --------------------------------------------------------------------------------------------


def test_each_disk_has_the_number_that_it_was_given_in() -> None:
    ctx = context(cluster())
    layout = disk_layout.layout(ctx, "web1", DiskTemplate.FILE, ["node-2"])
    wanted = [DiskParams(size=1024, name="root"), DiskParams(size=8, mode=DiskMode.RO, name="none")]
    first, second = disk_layout.disks(ctx, layout, wanted)
    assert (first.iv_name, first.size, str(first.mode), first.name) == (
        "disk/0",
        1024,
        "rw",
        "root",
    )
    assert (second.iv_name, second.size, str(second.mode), second.name) == ("disk/1", 8, "ro", None)
    assert first.nodes == ("node-2",)
    driver, path = first.logical_id
    assert driver == "loop"
    assert path.startswith("/srv/files/web1/")
    assert path.endswith(".file.disk0")
    assert first.uuid != second.uuid


def test_how_many_disks_an_instance_has() -> None:
    ctx = context(cluster())
    layout = disk_layout.layout(ctx, "web1", DiskTemplate.FILE, ["node-2"])
    with expect_refusal("an instance of template file needs a disk, as in --disk 0:size=10G"):
        disk_layout.disks(ctx, layout, [])
    assert len(disk_layout.disks(ctx, layout, [DiskParams(size=1)] * 16)) == 16
    with expect_refusal("an instance has at most 16 disks, not 17"):
        disk_layout.disks(ctx, layout, [DiskParams(size=1)] * 17)


@pytest.mark.parametrize(
    ("kind", "keys", "text"),
    [
        ("file", {"size": None}, "disk 3 has no size, as in --disk 3:size=10G"),
        ("file", {"size": 0}, "disk 3 has no size"),
        (
            "plain",
            {"ext": {"b": 1, "a": 2}},
            "disk 3: unknown key a, b; disks of template plain take no others than size, mode,",
        ),
        ("file", {"adopt": "old"}, "disks of template file cannot be adopted"),
        ("file", {"vg": "a"}, "disk 3: disks of template file lie in no volume group"),
        ("file", {"metavg": "a"}, "disk 3: disks of template file lie in no volume group"),
        (
            "file",
            {"dev_type": "plain"},
            "disk 3 has dev_type plain, but template file was requested; disks of other templates",
        ),
        ("file", {"provider": "p"}, "disk 3: disks of template file have no provider"),
        ("file", {"access": "userspace"}, "disk 3: disks of template file are accessed in one way"),
        ("rbd", {"access": "fast"}, "disk 3: access is kernelspace or userspace, not 'fast'"),
        ("file", {"spindles": 2}, "disk 3: spindles cannot be specified"),
        ("sharedfile", {"spindles": 2}, "disk 3: spindles cannot be specified"),
    ],
)
def test_keys_that_make_no_sense(kind: str, keys: dict[str, Any], text: str) -> None:
    with expect_refusal(text):
        plan_disk(kind, index=3, **keys)


def test_what_only_some_templates_know() -> None:
    assert plan_disk("file", dev_type="file").dev_type is DiskTemplate.FILE
    found = plan_disk("ext", provider="san", ext={"pool": 7})
    assert found.logical_id[0] == "san"
    assert found.params == {"provider": "san", "pool": "7"}
    assert found.nodes == ()
    for access in ("kernelspace", "userspace"):
        assert plan_disk("rbd", access=access).params == {"access": access}
    assert plan_disk("rbd").params == {}


def test_a_device_that_exists_becomes_a_disk() -> None:
    found = plan_disk("blockdev", adopt="/dev/disk/by-id/san-1")
    assert found.logical_id == ("manual", "/dev/disk/by-id/san-1")
    assert plan_disk("plain", adopt="old", vg="other").logical_id[0] == "other"


def test_spindles_are_kept_where_they_count() -> None:
    of = cluster()
    of = with_cluster(of, ndparams={**of.cluster.ndparams, "exclusive_storage": True})
    assert plan_disk("plain", of=of, spindles=3).spindles == 3
    assert plan_disk("plain", of=of).spindles is None


def test_the_volume_group_of_a_volume() -> None:
    assert plan_disk("plain").logical_id[0] == "xenvg"
    assert plan_disk("plain", vg="fast").logical_id[0] == "fast"
    without = cluster(volume_group_name=None)
    for kind, nodes in (("plain", ()), ("drbd", TWO)):
        with expect_refusal(
            "disk 2: the cluster has no volume group; name one with --disk 2:size=10G"
        ):
            plan_disk(kind, *nodes, of=without, index=2)
    assert plan_disk("plain", of=without, vg="fast").logical_id[0] == "fast"
    assert plan_disk("file", of=without).dev_type is DiskTemplate.FILE


# mirrors ------------------------------------------------------------------------------------------


def groups_of(disk: Disk) -> list[str]:
    return [child.logical_id[0] for child in disk.children]


def test_a_mirrored_disk_has_a_minor_on_each_node_and_a_secret() -> None:
    ctx = context(cluster())
    layout = disk_layout.layout(ctx, "web1", DiskTemplate.DRBD, TWO)
    wanted = [DiskParams(size=1024), DiskParams(size=512)]
    first, second = disk_layout.disks(ctx, layout, wanted)
    assert first.logical_id[:-1] == ("node-2", "node-3", 0, 0, 0)
    assert second.logical_id[:-1] == ("node-2", "node-3", 0, 1, 1)
    secrets = {first.logical_id[-1], second.logical_id[-1]}
    assert len(secrets) == 2
    assert all(len(secret) == 40 for secret in secrets)
    data, meta = first.children
    assert (data.size, meta.size) == (1024, 128)
    assert data.logical_id[1].endswith(".disk0_data")
    assert meta.logical_id[1].endswith(".disk0_meta")
    assert {data.dev_type, meta.dev_type} == {DiskTemplate.PLAIN}
    assert first.nodes == data.nodes == meta.nodes == TWO
    # The minors are held for the job, so another job gets others.
    other = ctx.claims.claim_minors(TWO, lambda: ctx.config, 8)
    assert other == [2, 2]


def test_the_volume_group_of_the_metadata() -> None:
    assert groups_of(plan_disk("drbd", *TWO)) == ["xenvg", "xenvg"]
    assert groups_of(plan_disk("drbd", *TWO, vg="fast", metavg="meta")) == ["fast", "meta"]
    of = cluster()
    [group] = of.groups.values()
    of = put(of, "nodegroups", base.replace(group, diskparams={"drbd": {"metavg": "usual"}}))
    assert groups_of(plan_disk("drbd", *TWO, of=of)) == ["xenvg", "usual"]
    assert groups_of(plan_disk("drbd", *TWO, of=of, metavg="meta")) == ["xenvg", "meta"]


def test_vg_name_and_diskparams_of_the_cluster() -> None:
    """Where volumes lie that nobody says a group for: ``volume_group_name``, set by vg_name."""
    assert plan_disk("plain", of=cluster(volume_group_name="fast")).logical_id[0] == "fast"
    usual = cluster(diskparams={"drbd": {"metavg": "usual"}})
    assert groups_of(plan_disk("drbd", *TWO, of=usual)) == ["xenvg", "usual"]


def test_a_mirrored_disk_on_another_node_keeps_what_the_other_side_knows() -> None:
    ctx = context(cluster())
    layout = disk_layout.layout(ctx, "web1", DiskTemplate.DRBD, TWO)
    disk = disk_layout.disk(ctx, layout, 0, DiskParams(size=1024))
    *_rest, secret = disk.logical_id
    disk = base.replace(disk, logical_id=("node-2", "node-3", 11000, 5, 6, secret))
    there = context(put(ctx.config, "disks", disk))
    moved = disk_layout.put_on_nodes(there, disk, ["node-4", "node-2", "node-3"])
    assert moved.logical_id == ("node-4", "node-2", 11000, 0, 5, secret)
    assert moved.nodes == ("node-4", "node-2")
    assert {child.nodes for child in moved.children} == {("node-4", "node-2")}
    assert [c.logical_id for c in moved.children] == [c.logical_id for c in disk.children]


def test_other_disks_on_another_node() -> None:
    ctx = context(cluster())
    volume = plan_disk("plain")
    moved = disk_layout.put_on_nodes(ctx, volume, ["node-3", "node-4"])
    assert moved == base.replace(volume, nodes=("node-3",))
    shared = plan_disk("sharedfile")
    assert disk_layout.put_on_nodes(ctx, shared, ["node-3"]) is shared


def test_fresh_volumes_have_new_names_in_the_same_groups() -> None:
    disk = base.replace(plan_disk("drbd", *TWO, metavg="meta"), iv_name="disk/4")
    data, meta = disk_layout.make_volumes(disk)
    assert (data.logical_id[0], meta.logical_id[0]) == ("xenvg", "meta")
    name = data.logical_id[1].removesuffix(".disk4_data")
    assert meta.logical_id[1] == f"{name}.disk4_meta"
    assert name not in disk.children[0].logical_id[1]
    assert (data.size, meta.size) == (1024, 128)
