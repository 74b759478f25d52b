"""Which nodes are asked for their storage, of which type, and what they are told."""

from __future__ import annotations

import pytest
from op_samples import config, context, node, with_cluster

from ganeti import errors
from ganeti.opcodes.enums import StorageType
from ganeti.ops.planning import node_storage


def test_unknown_fields_are_named_with_those_that_exist() -> None:
    node_storage.check_fields([], ["name", "size"])
    node_storage.check_fields(["size"], ["name", "size"])
    with pytest.raises(errors.OpPrereqError) as caught:
        node_storage.check_fields(["name", "sise"], ["name", "size"])
    assert "unknown field 'sise'" in str(caught.value)
    assert "choose from name, size" in str(caught.value)


def test_all_nodes_that_run_instances_are_asked_in_natural_order() -> None:
    ctx = context(config(node(10), node(2), node(3, offline=True), node(4, vm_capable=False)))
    names = [item.name.partition(".")[0] for item in node_storage.choose_nodes(ctx, [])]
    assert names == ["node1", "node2", "node10"]


def test_named_nodes_are_asked_once_and_whatever_they_run() -> None:
    ctx = context(config(node(2), node(3, offline=True), node(4, vm_capable=False)))
    found = node_storage.choose_nodes(ctx, ["node4", "node2", "node3", "node2.example.com"])
    assert [item.uuid for item in found] == ["node-2", "node-4"]
    with pytest.raises(errors.OpPrereqError, match="node9"):
        node_storage.choose_nodes(ctx, ["node9"])


def test_storage_of_an_offline_node_cannot_be_changed() -> None:
    node_storage.check_online(node(2))
    text = r"node node3\.example\.com is offline: its storage cannot be changed"
    with pytest.raises(errors.OpPrereqError, match=text):
        node_storage.check_online(node(3, offline=True))


@pytest.mark.parametrize(
    ("templates", "kind"),
    [
        (("drbd", "file"), StorageType.LVM_VG),
        (("diskless", "rbd", "file", "plain"), StorageType.FILE),
        (("sharedfile",), StorageType.SHAREDFILE),
    ],
)
def test_the_first_template_with_units_decides_the_type(
    templates: tuple[str, ...], kind: StorageType
) -> None:
    of = with_cluster(config(), enabled_disk_templates=templates)
    assert node_storage.default_type(of) is kind


@pytest.mark.parametrize("templates", [("diskless",), ("rbd", "ext")])
def test_without_units_the_type_must_be_given(templates: tuple[str, ...]) -> None:
    of = with_cluster(config(), enabled_disk_templates=templates)
    with pytest.raises(errors.OpPrereqError, match="give --storage-type"):
        node_storage.default_type(of)


def test_a_node_is_told_the_directory_of_the_type() -> None:
    of = with_cluster(config(), file_storage_dir="/srv/files", shared_file_storage_dir="")
    assert node_storage.unit_args(of, StorageType.FILE) == [["/srv/files"]]
    assert node_storage.unit_args(of, StorageType.SHAREDFILE) == [[]]
    assert node_storage.unit_args(of, StorageType.LVM_VG) == []
