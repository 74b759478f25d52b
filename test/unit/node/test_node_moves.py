"""LocalNode calls that change devices of running instances, and that move them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from local_node import LocalNode
from node_samples import INSTANCE, disk, instance, misbehave, prepare_instance, renew_right, say

from ganeti import errors
from ganeti.model.enums import HotplugAction, HotplugTarget, MigrationState
from ganeti.node.context import NodeContext
from ganeti.paths import Paths
from ganeti.rpc.objects import RightState

NIC = {"uuid": "n-1", "mac": "aa:00:00:00:00:01"}


def changes(paths: Paths) -> list[str]:
    return (paths.fake_hypervisor / f".changes-{INSTANCE}").read_text().splitlines()


def test_devices_of_a_running_instance(node: LocalNode, paths: Paths) -> None:
    made = prepare_instance(node, paths)
    node.instance_start(made, False, [])
    node.hotplug_supported(made)
    item = made.disks_info[0]
    value = msgspec.to_builtins(item)
    for action in (HotplugAction.ADD, HotplugAction.REMOVE):
        node.hotplug_device(made, action, HotplugTarget.DISK, value, None, 0)
    for action in HotplugAction:
        node.hotplug_device(made, action, HotplugTarget.NIC, NIC, None, 0)
    node.resize_disk(made, item, 8)
    node.instance_change_media(made)
    assert changes(paths) == [
        f"plug_disk {item.uuid}",
        f"unplug_disk {item.uuid}",
        "plug_nic n-1",
        "unplug_nic n-1",
        "change_nic n-1",
        f"resize_disk {item.uuid} 8",
        "change_media -",
    ]
    node.instance_balloon_memory(made, 128)
    assert node.instance_info(INSTANCE, "fake", {})["memory"] == 128


def test_devices_that_cannot_be_changed(node: LocalNode, paths: Paths) -> None:
    made = prepare_instance(node, paths)
    with pytest.raises(errors.HotplugError, match="does not run"):
        node.hotplug_supported(made)
    node.instance_start(made, False, [])
    value = msgspec.to_builtins(made.disks_info[0])
    with pytest.raises(errors.ParameterError, match="mac"):
        node.hotplug_device(made, HotplugAction.ADD, HotplugTarget.NIC, {"uuid": "n"}, None, 0)
    node.blockdev_shutdown(made.disks_info[0])
    with pytest.raises(errors.HotplugError, match="not activated"):
        node.hotplug_device(made, HotplugAction.ADD, HotplugTarget.DISK, value, None, 0)
    with pytest.raises(errors.ParameterError, match="0 MiB"):
        node.instance_balloon_memory(made, 0)


@pytest.fixture
def second_node(tmp_path: Path) -> LocalNode:
    """A second node, with a root of its own."""
    where = Paths(tmp_path / "other")
    for directory in (where.data, where.run, where.log, where.conf, where.file_storage):
        directory.mkdir(parents=True, mode=0o750)
    where.ssconf("file_storage_dir").write_text(f"{where.file_storage}\n")
    return LocalNode(NodeContext(where, "node2.example.com"))


def test_an_instance_is_moved(node: LocalNode, paths: Paths, second_node: LocalNode) -> None:
    made = instance()
    node.instance_start(made, False, [])
    node.instance_migratable(made, True)
    info = node.migration_info(made, True)
    say(node, made, RightState.LEAVING)
    say(second_node, made, RightState.ARRIVING)
    where = second_node.accept_instance(made, info, "192.0.2.2")
    node.instance_migrate("cluster", made, where, True)
    assert node.instance_get_migration_status(made).status is MigrationState.COMPLETED
    say(second_node, made, RightState.HERE)
    second_node.instance_finalize_migration_dst(made, info, True)
    node.instance_finalize_migration_src(made, True, True)
    assert second_node.instance_list(["fake"], {}) == [INSTANCE]
    assert node.instance_list(["fake"], {}) == []


def test_what_a_move_that_broke_off_left_is_removed_by_a_shutdown(
    node: LocalNode, second_node: LocalNode
) -> None:
    made = instance()
    node.instance_start(made, False, [])
    say(node, made, RightState.LEAVING)
    say(second_node, made, RightState.ARRIVING)
    second_node.accept_instance(made, node.migration_info(made, True), "192.0.2.2")
    node.instance_migrate("cluster", made, "192.0.2.2:1", True)
    assert node.instance_list(["fake"], {}) == second_node.instance_list(["fake"], {}) == []
    for end in (node, second_node):
        end.instance_shutdown(made, 1, [])
        say(end, made, RightState.HERE)
        end.instance_start(renew_right(made), False, [])


def test_disks_must_be_there_before_an_instance_arrives(node: LocalNode, paths: Paths) -> None:
    made = instance(disk(paths))
    say(node, made, RightState.ARRIVING)
    with pytest.raises(errors.HypervisorError, match="cannot be received: its disk 0"):
        node.accept_instance(made, {"memory": 1, "vcpus": 1}, "192.0.2.2")


def test_words_of_the_hypervisor_arrive(node: LocalNode, paths: Paths) -> None:
    made = instance()
    node.instance_start(made, False, [])
    say(node, made, RightState.LEAVING)
    misbehave(paths, migrate={"*": {"fail": "no route"}})
    with pytest.raises(errors.HypervisorError, match="no route"):
        node.instance_migrate("cluster", made, "192.0.2.2:1", True)
    assert node.instance_list(["fake"], {}) == [INSTANCE]


def test_orders_of_a_move_out_of_turn_are_refused(node: LocalNode, second_node: LocalNode) -> None:
    made = instance()
    node.instance_start(made, False, [])
    info = node.migration_info(made, True)
    with pytest.raises(errors.RunRightError, match="not 'leaving'"):
        node.instance_migrate("cluster", made, "192.0.2.2:1", True)
    with pytest.raises(errors.RunRightError, match="not 'arriving'"):
        second_node.accept_instance(made, info, "192.0.2.2")
    say(second_node, made, RightState.ARRIVING)
    second_node.accept_instance(made, info, "192.0.2.2")
    with pytest.raises(errors.RunRightError, match="not 'here'"):
        second_node.instance_finalize_migration_dst(made, info, True)
    assert second_node.instance_list(["fake"], {}) == []
    second_node.instance_finalize_migration_dst(made, info, False)
