"""How operations find what a request names, which locks they take, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable, Generator
from types import SimpleNamespace
from typing import Any

import pytest
from op_samples import change, config, node, put, with_group, with_instance

from ganeti import errors
from ganeti.locking.levels import LockLevel
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.enums import AdminState
from ganeti.model.instance import Reservation
from ganeti.model.network import Network
from ganeti.model.notification import Notification
from ganeti.opcodes.enums import StorageType
from ganeti.opcodes.instance import OpInstanceRename, OpInstanceShutdown
from ganeti.opcodes.network import OpNetworkDisconnect, OpNetworkRename
from ganeti.opcodes.node_storage import OpNodeModifyStorage
from ganeti.opcodes.snapshot import OpSnapshotRemove
from ganeti.ops.instance.rename import InstanceRename
from ganeti.ops.instance.shutdown import InstanceShutdown
from ganeti.ops.network.disconnect import NetworkDisconnect
from ganeti.ops.network.rename import NetworkRename
from ganeti.ops.node.modify_storage import NodeModifyStorage
from ganeti.ops.on_reservations.rename import ReservationRename
from ganeti.ops.operation import Context
from ganeti.ops.snapshot.remove import SnapshotRemove
from ganeti.ops.targets import instance, network, notification, tags
from ganeti.ops.targets import node as node_target

LAN = Network(uuid="net-lan", name="lan", network="192.0.2.0/24")  # type: ignore[arg-type]
WEB = Network(uuid="net-web", name="web", network="198.51.100.0/24")  # type: ignore[arg-type]


def cluster() -> Config:
    of = put(with_group(config(node(2), node(3)), "rack1"), "networks", LAN, WEB)
    return with_instance(of, "web1", "node-2", "node-3")


def take(
    of: Config,
    needs: Callable[[Context], Generator[Any, None, Any]],
    edit: Callable[[Config], Config] | None = None,
) -> tuple[list[str], Any]:
    """Locks that are requested, and what is found; the edit happens while the job waits."""
    ctx: Any = SimpleNamespace(config=of)
    seen: list[str] = []
    generator = needs(ctx)
    try:
        while True:
            need = next(generator)
            names = ",".join(need.names or ())
            seen.append(
                f"{LockLevel(need.level).label}/{names}{' (shared)' if need.shared else ''}"
            )
            if edit is not None:
                ctx.config = edit(ctx.config)
    except StopIteration as end:
        return seen, end.value


def remove(table: str, uuid: str) -> Callable[[Config], Config]:
    return lambda of: of.apply([], [(table, uuid)], None, mtime=3.0)


def rename_item(table: str, item: Any) -> Callable[[Config], Config]:
    return lambda of: put(of, table, base.replace(item, name="other"))


def test_a_network_is_locked_and_read_again() -> None:
    seen, found = take(cluster(), lambda ctx: network.lock(ctx, "lan"))
    assert (seen, found.uuid) == (["network/net-lan"], "net-lan")


@pytest.mark.parametrize("edit", [remove("networks", "net-lan"), rename_item("networks", LAN)])
def test_a_network_that_goes_while_the_job_waits(edit: Callable[[Config], Config]) -> None:
    with pytest.raises(errors.OpPrereqError, match="network 'lan' was removed or renamed while"):
        take(cluster(), lambda ctx: network.lock(ctx, "lan"), edit)


def test_networks_of_nics_stay_while_they_are_used() -> None:
    seen, _ = take(
        cluster(), lambda ctx: network.lock_used(ctx, ["web", None, "lan", "none", "web"])
    )
    assert seen == ["network/net-lan,net-web (shared)"]
    assert take(cluster(), lambda ctx: network.lock_used(ctx, [None, "none", ""]))[0] == []
    with pytest.raises(errors.OpPrereqError, match="network 'nosuch' is not known"):
        take(cluster(), lambda ctx: network.lock_used(ctx, ["lan", "nosuch"]))


def test_an_operation_on_a_network_and_a_group_locks_both() -> None:
    def lock(ctx: Context, name: str = "lan") -> Generator[Any, None, Any]:
        op = OpNetworkDisconnect(network_name=name, group_name="rack1")
        operation = NetworkDisconnect(op, ctx)
        yield from operation.locks()
        return operation.network.name, operation.group.name

    assert take(cluster(), lock) == (
        ["nodegroup/group-rack1", "network/net-lan"],
        ("lan", "rack1"),
    )
    with pytest.raises(errors.OpPrereqError, match="network 'nosuch' is not known"):
        take(cluster(), lambda ctx: lock(ctx, "nosuch"))


def test_hooks_of_a_connection_run_on_the_nodes_of_the_group() -> None:
    of = put(cluster(), "nodes", node(4, "group-rack1"))
    ctx: Any = SimpleNamespace(config=of)
    group = of.group("rack1")
    hooks = network.group_hooks(ctx, "network-connect", group, {"mode": "bridged", "link": "br0"})
    assert (hooks.path, hooks.pre_nodes, hooks.post_nodes) == (
        "network-connect",
        ["node-4"],
        ["node-4"],
    )
    assert hooks.env == {
        "GROUP_NAME": "rack1",
        "GROUP_NETWORK_MODE": "bridged",
        "GROUP_NETWORK_LINK": "br0",
    }


def test_nodes_are_locked_once_however_often_they_are_named() -> None:
    names = ["node3.example.com", "node2.example.com", "node-3"]
    seen, found = take(cluster(), lambda ctx: node_target.lock_several(ctx, names, shared=True))
    assert (seen, found) == (["node/node-3,node-2 (shared)"], ["node-3", "node-2"])


def test_nodes_that_go_while_the_job_waits() -> None:
    of = config(node(2))
    with pytest.raises(errors.OpPrereqError, match=r"node 'node2\.example\.com' was removed"):
        take(
            of,
            lambda ctx: node_target.lock_several(ctx, ["node2.example.com"], shared=False),
            remove("nodes", "node-2"),
        )


def test_a_uuid_of_a_node_comes_before_its_name() -> None:
    # the name may have gone to another server since the request was made
    def lock(ctx: Context) -> Generator[Any, None, Any]:
        op = OpNodeModifyStorage(
            node_name="node2.example.com",
            node_uuid="node-3",
            storage_type=StorageType.LVM_PV,
            name="/dev/sda1",
            changes={"allocatable": False},
        )
        operation = NodeModifyStorage(op, ctx)
        yield from operation.locks()
        return operation.node.name

    assert take(cluster(), lock)[1] == "node3.example.com"


def test_an_operation_on_a_network_locks_it() -> None:
    def lock(ctx: Context) -> Generator[Any, None, Any]:
        operation = NetworkRename(OpNetworkRename(network_name="web", new_name="www"), ctx)
        yield from operation.locks()
        return operation.network.name

    assert take(cluster(), lock) == (["network/net-web"], "web")


@pytest.mark.parametrize(
    ("storage", "locks"),
    [
        (True, ["instance/web1", "node/node-2,node-3 (shared)", "node-res/node-2,node-3"]),
        (False, ["instance/web1", "node/node-2,node-3 (shared)"]),
    ],
)
def test_disks_are_changed_under_the_locks_of_their_storage(
    storage: bool, locks: list[str]
) -> None:
    seen, found = take(
        cluster(), lambda ctx: instance.lock_with_disks(ctx, "web1", storage=storage)
    )
    assert (seen, found.name) == (locks, "web1")


def test_a_reservation_has_no_disks_to_change() -> None:
    of = with_instance(config(node(2)), "web1", "node-2", forthcoming=True)
    with pytest.raises(errors.OpPrereqError, match="instance 'web1' is forthcoming"):
        take(of, lambda ctx: instance.lock_with_disks(ctx, "web1"))


def rename(of: Config, uuid: str | None = None) -> Any:
    """The class that renames web1."""
    op = OpInstanceRename(instance_name="web1", instance_uuid=uuid, new_name="web2")
    ctx: Any = SimpleNamespace(config=of)
    return InstanceRename.variant(op, ctx)


def test_a_reservation_has_its_own_way_when_there_is_one() -> None:
    real = with_instance(config(node(2)), "web1", "node-2")
    reserved = change(real, forthcoming=True, reservation=Reservation())
    assert rename(real) is InstanceRename
    assert rename(reserved) is ReservationRename
    # its creation is under way, or was interrupted: the operation refuses that in words
    assert rename(change(reserved, creating=7)) is InstanceRename
    assert rename(config()) is InstanceRename
    # the name went to another one since the request was made
    other = with_instance(reserved, "web2", "node-2")
    assert rename(other, "inst-web2") is InstanceRename
    op = OpInstanceShutdown(instance_name="web1")
    ctx: Any = SimpleNamespace(config=reserved)
    assert InstanceShutdown.variant(op, ctx) is InstanceShutdown


def instance_locks(of: Config, cls: Any, op: Any) -> tuple[list[str], Any]:
    def lock(ctx: Context) -> Generator[Any, None, Any]:
        operation = cls(op, ctx)
        yield from operation.locks()
        return operation

    return take(of, lock)


def test_an_operation_on_an_instance_locks_it_and_shares_its_nodes() -> None:
    seen, operation = instance_locks(
        cluster(), InstanceShutdown, OpInstanceShutdown(instance_name="web1")
    )
    assert seen == ["instance/web1", "node/node-2,node-3 (shared)"]
    assert operation.instance.name == "web1"


def test_an_operation_sees_what_it_changed_itself() -> None:
    seen, operation = instance_locks(
        cluster(), InstanceShutdown, OpInstanceShutdown(instance_name="web1")
    )
    operation.ctx.config = change(cluster(), admin_state=AdminState.UP)
    assert (operation.instance.admin_state, operation.now.admin_state) == ("down", "up")
    assert seen


def test_an_operation_on_a_real_instance_refuses_a_reservation() -> None:
    reserved = change(cluster(), forthcoming=True)
    op = OpInstanceShutdown(instance_name="web1")
    with pytest.raises(errors.OpPrereqError, match="instance 'web1' is forthcoming"):
        instance_locks(reserved, InstanceShutdown, op)


def test_snapshots_are_made_under_the_locks_of_the_storage() -> None:
    op = OpSnapshotRemove(instance_name="web1", snapshot_name="before")
    seen, _ = instance_locks(cluster(), SnapshotRemove, op)
    assert seen == [
        "instance/web1",
        "node/node-2,node-3 (shared)",
        "node-res/node-2,node-3",
    ]


def test_hooks_of_an_instance_run_on_the_master_and_its_nodes() -> None:
    _seen, operation = instance_locks(
        cluster(), InstanceShutdown, OpInstanceShutdown(instance_name="web1")
    )
    hooks = operation.instance_hooks("instance-stop", {"TIMEOUT": 120})
    nodes = [operation.ctx.config.cluster.master_node, "node-2", "node-3"]
    assert (hooks.path, hooks.object_type) == ("instance-stop", "INSTANCE")
    assert (list(hooks.pre_nodes), list(hooks.post_nodes)) == (nodes, nodes)
    assert (hooks.env["TIMEOUT"], hooks.env["INSTANCE_NAME"]) == (120, "web1")
    assert operation.instance_hooks("instance-stop").env["INSTANCE_NAME"] == "web1"


@pytest.mark.parametrize(
    ("kind", "name", "lock", "found"),
    [
        ("instance", "web1", ["instance/web1"], "inst-web1"),
        ("node", "node2.example.com", ["node/node-2"], "node-2"),
        ("nodegroup", "rack1", ["nodegroup/group-rack1"], "group-rack1"),
        ("network", "lan", ["network/net-lan"], "net-lan"),
        ("disk", "disk-web1", ["instance/web1", "disk/disk-web1"], "disk-web1"),
    ],
)
def test_tags_are_those_of_the_object_that_is_named(
    kind: str, name: str, lock: list[str], found: str
) -> None:
    of = cluster()
    assert tags.find(of, kind, name).uuid == found  # type: ignore[attr-defined]
    assert take(of, lambda ctx: tags.lock(ctx, kind, name))[0] == lock


def test_the_cluster_needs_no_name_and_no_lock() -> None:
    of = cluster()
    assert tags.find(of, "cluster", None) is of.cluster
    assert take(of, lambda ctx: tags.lock(ctx, "cluster", None))[0] == []


@pytest.mark.parametrize("name", [None, ""])
def test_tags_of_an_object_without_a_name(name: str | None) -> None:
    with pytest.raises(errors.OpPrereqError, match="a node name is needed") as refused:
        tags.find(cluster(), "node", name)
    assert refused.value.args[1] == errors.ErrorCode.INVAL


def test_a_notification_is_found_by_its_name() -> None:
    of = config(notifications={"mail": Notification(recipients=("root@example.com",))})
    assert notification.find(of, "mail").recipients == ("root@example.com",)
    with pytest.raises(errors.OpPrereqError, match=r"no notification 'mial'.*mail") as no:
        notification.find(of, "mial")
    assert no.value.args[1] == errors.ErrorCode.NOENT
