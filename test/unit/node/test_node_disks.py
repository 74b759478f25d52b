"""Disks on a node, as files: made, linked, grown, renamed, destroyed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from local_node import LocalNode
from node_samples import DISK_UUID, INSTANCE, disk, instance

from ganeti import errors
from ganeti.net import certs, pem
from ganeti.node.context import NodeContext
from ganeti.node.disks import Disks
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeDisk

MIB = 1024 * 1024


def make(node: LocalNode, item: NodeDisk, size: int = 4) -> Path:
    node.blockdev_create(item, size, INSTANCE, True, "", False)
    return Path(item.logical_id[1])


def links(paths: Paths) -> dict[str, str]:
    directory = paths.instance_disks
    return {name: os.readlink(directory / name) for name in os.listdir(directory)}


def test_a_disk_is_made_with_its_size(node: LocalNode, paths: Paths) -> None:
    item = disk(paths)
    assert node.blockdev_find(item) is None
    assert node.blockdev_create(item, 8, INSTANCE, True, "", False) == list(item.logical_id)
    assert Path(item.logical_id[1]).stat().st_size == 8 * MIB
    status = node.blockdev_find(item)
    assert status is not None
    assert (status.dev_path, status.is_degraded) == (item.logical_id[1], False)


def test_an_existing_disk_is_not_overwritten(node: LocalNode, paths: Paths) -> None:
    file = make(node, disk(paths))
    file.write_text("precious")
    with pytest.raises(errors.BlockDeviceError, match="exists already"):
        make(node, disk(paths))
    assert file.read_text() == "precious"


@pytest.mark.parametrize("size", [0, -4])
def test_a_disk_needs_a_size(node: LocalNode, paths: Paths, size: int) -> None:
    with pytest.raises(errors.ParameterError, match="MiB"):
        make(node, disk(paths), size)


def test_a_disk_can_be_removed_twice(node: LocalNode, paths: Paths) -> None:
    file = make(node, disk(paths))
    node.blockdev_remove(disk(paths))
    node.blockdev_remove(disk(paths))
    assert not file.exists()


def test_disks_outside_the_allowed_directories_are_not_touched(
    node: LocalNode, paths: Paths
) -> None:
    victim = paths.root / "victim"
    victim.write_text("precious")
    bad = disk(paths, logical_id=("loop", str(victim)))
    for attempt in (
        lambda: node.blockdev_create(bad, 4, INSTANCE, True, "", False),
        lambda: node.blockdev_remove(bad),
        lambda: node.blockdev_assemble(bad, instance(bad), True, 0),
        lambda: node.blockdev_shutdown(bad),
        lambda: node.blockdev_find(bad),
        lambda: node.blockdev_grow(bad, 4, False, True, False),
    ):
        with pytest.raises(errors.FileStoragePathError):
            attempt()
    assert victim.read_text() == "precious"


def test_without_a_list_the_cluster_says_what_is_allowed(
    context: NodeContext, paths: Paths
) -> None:
    paths.ssconf("shared_file_storage_dir").write_text("/mnt/shared\n")
    found = Disks(context).environment()
    assert set(found.file_roots) == {paths.under("/mnt/shared"), paths.file_storage}
    paths.ssconf("file_storage_dir").write_text("")
    assert paths.file_storage not in Disks(context).environment().file_roots


def test_gluster_volumes_are_mounted_where_gluster_storage_dir_says(
    context: NodeContext, paths: Paths
) -> None:
    paths.ssconf("gluster_storage_dir").write_text("/mnt/gluster\n")
    assert Disks(context).environment().gluster_dir == paths.under("/mnt/gluster")


@pytest.mark.parametrize("text", ["# only this\n/mnt/fast\n", "# nothing\n"])
def test_what_the_master_wants_does_not_widen_the_list_of_the_node(
    node: LocalNode, context: NodeContext, paths: Paths, text: str
) -> None:
    paths.file_storage_paths.write_text(text)
    node.write_ssconf_files({"file_storage_dir": "/srv/other"})
    allowed = {paths.under("/mnt/fast")} if "/mnt" in text else set()
    assert set(Disks(context).environment().file_roots) == allowed
    with pytest.raises(errors.FileStoragePathError, match="file-storage-paths"):
        node.file_storage_dir_create(str(paths.under("/srv/other/web1")))


def test_a_master_candidate_knows_its_uuid(context: NodeContext, paths: Paths) -> None:
    assert Disks(context).environment().node_uuid == ""
    authority = certs.create_ca("test")
    certs.write(paths.client_cert, certs.issue_client(authority, "node1"))
    digest = pem.digest_of_file(paths.client_cert)
    paths.ssconf("master_candidates_certs").write_text(f"u-1={'AA:' * 19}AA\nu-2={digest}\n")
    assert Disks(context).environment().node_uuid == "u-2"


def test_sizes_of_disks_are_told_and_one_bad_disk_hides_no_other(
    node: LocalNode, paths: Paths
) -> None:
    first, missing = disk(paths, 0), disk(paths, 1)
    make(node, first, 8)
    outside = disk(paths, logical_id=("loop", "/etc/passwd"))
    found = node.blockdev_getdimensions([missing, outside, first])
    assert found == [None, None, (8 * MIB, None)]


# use


def test_an_assembled_disk_has_a_link_until_it_is_shut_down(node: LocalNode, paths: Paths) -> None:
    item = disk(paths)
    file = make(node, item)
    path, link, uri = node.blockdev_assemble(item, instance(item), True, 0)
    assert (path, uri) == (str(file), None)
    assert links(paths) == {f"{INSTANCE}:0": str(file)}
    assert Path(link).samefile(file)
    node.blockdev_assemble(item, instance(item), True, 0)
    node.blockdev_shutdown(item)
    node.blockdev_shutdown(item)
    assert links(paths) == {}
    assert file.exists()


def test_links_of_other_disks_stay(node: LocalNode, paths: Paths) -> None:
    first, second = disk(paths, 0), disk(paths, 1)
    for index, item in enumerate((first, second)):
        make(node, item)
        node.blockdev_assemble(item, instance(first, second), True, index)
    node.blockdev_shutdown(first)
    assert links(paths) == {f"{INSTANCE}:1": second.logical_id[1]}


def test_only_the_primary_node_has_a_link(node: LocalNode, paths: Paths) -> None:
    item = disk(paths)
    make(node, item)
    assert node.blockdev_assemble(item, instance(item), False, 0)[1] == ""
    assert not paths.instance_disks.exists()


def test_a_stale_link_is_replaced(node: LocalNode, paths: Paths) -> None:
    item = disk(paths)
    file = make(node, item)
    paths.instance_disks.mkdir()
    (paths.instance_disks / f"{INSTANCE}:0").symlink_to("/dev/null")
    node.blockdev_assemble(item, instance(item), True, 0)
    assert links(paths) == {f"{INSTANCE}:0": str(file)}


def test_a_missing_disk_cannot_be_assembled(node: LocalNode, paths: Paths) -> None:
    with pytest.raises(errors.BlockDeviceError, match="not on this node"):
        node.blockdev_assemble(disk(paths), instance(), True, 0)


def test_an_instance_name_cannot_move_the_link(node: LocalNode, paths: Paths) -> None:
    item = disk(paths)
    make(node, item)
    with pytest.raises(errors.ParameterError, match="is not an instance name"):
        node.blockdev_assemble(item, instance(item, name="../../x"), True, 0)


# changes


def test_a_grow_in_two_calls_happens_once(node: LocalNode, paths: Paths) -> None:
    file = make(node, disk(paths))
    node.blockdev_grow(disk(paths), 4, True, True, False)
    assert file.stat().st_size == 4 * MIB
    node.blockdev_grow(disk(paths), 4, False, True, False)
    node.blockdev_grow(disk(paths), 4, False, False, False)
    assert file.stat().st_size == 8 * MIB


def test_what_is_missing_or_would_shrink_does_not_grow(node: LocalNode, paths: Paths) -> None:
    with pytest.raises(errors.BlockDeviceError, match="not on this node"):
        node.blockdev_grow(disk(paths), 4, False, True, False)
    make(node, disk(paths))
    with pytest.raises(errors.ParameterError, match="grow by -4"):
        node.blockdev_grow(disk(paths), -4, False, True, False)


def test_a_renamed_disk_keeps_its_content_and_loses_its_link(node: LocalNode, paths: Paths) -> None:
    item = disk(paths)
    make(node, item).write_text("data")
    node.blockdev_assemble(item, instance(item), True, 0)
    target = paths.file_storage / "other.example.com" / "disk"
    node.blockdev_rename([(item, ["loop", str(target)])])
    assert target.read_text() == "data"
    assert links(paths) == {}


def test_all_renames_are_tried_and_all_problems_told(node: LocalNode, paths: Paths) -> None:
    first, second, third = (disk(paths, index, uuid=f"{DISK_UUID}-{index}") for index in range(3))
    make(node, second)
    wanted = [
        (item, ["loop", str(paths.file_storage / "new" / f"{index}")])
        for index, item in enumerate((first, second, third))
    ]
    with pytest.raises(errors.BlockDeviceError) as caught:
        node.blockdev_rename(wanted)
    assert f"{DISK_UUID}-0" in str(caught.value)
    assert f"{DISK_UUID}-2" in str(caught.value)
    assert f"{DISK_UUID}-1" not in str(caught.value)
    assert (paths.file_storage / "new" / "1").exists()


def test_directories_for_disks(node: LocalNode, paths: Paths) -> None:
    first, second = paths.file_storage / "a" / "b", paths.file_storage / "a" / "c"
    node.file_storage_dir_create(str(first))
    assert first.is_dir()
    node.file_storage_dir_rename(str(first), str(second))
    assert not first.exists()
    node.file_storage_dir_remove(str(second))
    node.file_storage_dir_remove(str(second))
    assert not second.exists()


def test_directories_elsewhere_are_refused(node: LocalNode, paths: Paths) -> None:
    inside, outside = str(paths.file_storage / "x"), str(paths.root / "x")
    node.file_storage_dir_create(inside)
    for attempt in (
        lambda: node.file_storage_dir_create(outside),
        lambda: node.file_storage_dir_remove(outside),
        lambda: node.file_storage_dir_rename(inside, outside),
        lambda: node.file_storage_dir_create(f"{inside}/../../../../x"),
    ):
        with pytest.raises(errors.FileStoragePathError):
            attempt()
    assert not Path(outside).exists()


def test_a_template_without_driver_is_named(node: LocalNode, paths: Paths) -> None:
    with pytest.raises(errors.ParameterError, match="diskless"):
        node.blockdev_find(disk(paths, dev_type="diskless"))
