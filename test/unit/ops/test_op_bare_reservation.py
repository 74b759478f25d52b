"""No operation stumbles over a reservation of which only the uuid is known.

Another implementation may have made it, with nothing of ours in it. Each opcode that can mean an
instance or look at all of them is run against one, in a cluster of one process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from one_process import OneProcess

from ganeti import errors
from ganeti.config.changes import Author, Draft
from ganeti.model.disk import Disk
from ganeti.model.ids import DiskUuid
from ganeti.model.instance import Instance
from ganeti.opcodes import registry, wire
from ganeti.opcodes.describe import parameters

BARE, WITH_DISK, LOOSE = "bare-uuid", "other-uuid", "disk-uuid"
#: What required parameters get, by name.
VALUES: dict[str, Any] = {
    "files": ["/etc/fstab"],
    "instance_name": BARE,
    "instances": [],
    "new_name": "new.example.com",
    "snapshot_name": "clean",
    "disk": 0,
    "amount": 64,
    "target_node": "node2.example.com",
    "node_name": "node1.example.com",
    "group_name": "default",
    "reboot_type": "hard",
    "nodes": ["node2.example.com"],
    "kind": "instance",
    "name": BARE,
    "tags": ["a"],
    "disk_name": LOOSE,
    "what": "instance",
    "fields": ["name"],
    "pattern": ".*",
    "mode": "create",
    "disks": [],
    "nics": [],
    "output_fields": ["name"],
    "storage_type": "file",
    "changes": {},
    "duration": 0,
    "direction": "in",
    "size": 4,
    "disk_template": "file",
    "from_nodes": ["node1.example.com"],
    "to_nodes": ["node2.example.com"],
    "node_names": ["node2.example.com"],
    "on": True,
    "image_name": "debian",
    "notification_name": "chat",
    "source": "debian.qcow2",
    "description": "",
}
#: What is chosen besides, so that the operation gets as far as the instance.
MORE: dict[str, dict[str, Any]] = {
    "OP_INSTANCE_CREATE": {"commit": True},
    "OP_INSTANCE_SET_PARAMS": {"beparams": {"memory": 64}},
    "OP_INSTANCE_REPLACE_DISKS": {"mode": "replace_on_primary"},
    "OP_NODE_EVACUATE": {"mode": "all", "iallocator": "x"},
    "OP_GROUP_EVACUATE": {"iallocator": "x"},
    "OP_RESERVATION_SET_PARAMS": {"owner": "alice"},
    "OP_BACKUP_PREPARE": {"mode": "local"},
    "OP_DISK_CREATE": {"disk": {"size": 4}},
    "OP_BACKUP_EXPORT": {"mode": "local"},
}
#: They work on nothing of an instance, or need the daemon around the operations.
ELSEWHERE = (
    "OP_CLUSTER_DESTROY",
    "OP_CLUSTER_POST_INIT",
    "OP_CLUSTER_QUERY",
    "OP_CLUSTER_CONFIG_QUERY",
    "OP_QUERY",
    "OP_QUERY_FIELDS",
    "OP_TEST_",
    "OP_NETWORK_",
    "OP_EXT_",
    "OP_OS_",
    "OP_OOB_",
    "OP_RESTRICTED_",
    "OP_NODE_ADD",
    "OP_NODE_POWERCYCLE",
    "OP_CLUSTER_RENAME",
    "OP_CLUSTER_ACTIVATE_MASTER_IP",
    "OP_CLUSTER_DEACTIVATE_MASTER_IP",
)


def _opcodes() -> list[str]:
    return [op_id for op_id in registry.all_opcodes() if not op_id.startswith(ELSEWHERE)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneProcess]:
    made = OneProcess(tmp_path_factory.mktemp("bare") / "cluster", count=2)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def bare_reservations(cluster: OneProcess) -> None:
    """The two reservations, as if a configuration of somebody else had been read."""

    def edit(draft: Draft) -> None:
        for old in draft.config.instances.values():
            draft.delete(old)
        for disk in draft.config.disks.values():
            draft.delete(disk)

    def restore(draft: Draft) -> None:
        draft.put(Instance(uuid=BARE, forthcoming=True))
        draft.put(Disk(uuid=LOOSE, forthcoming=True))
        draft.put(Instance(uuid=WITH_DISK, forthcoming=True, disks=(DiskUuid(LOOSE),)))

    cluster.store.change("clean", Author(), edit)
    cluster.store.change("bare", Author(), restore)
    cluster.new_master()


def _sample(op_id: str, name: str) -> dict[str, Any]:
    cls = registry.find(op_id)
    needed = {item.name for item in parameters(cls) if item.required}
    given = {key: VALUES[key] for key in needed}
    if "instance_name" in given:
        given["instance_name"] = name
    return {"OP_ID": op_id, **given, **MORE.get(op_id, {})}


@pytest.mark.parametrize("name", [BARE, WITH_DISK])
@pytest.mark.parametrize("op_id", _opcodes())
def test_an_operation_ends_or_says_what_is_missing(
    cluster: OneProcess, op_id: str, name: str
) -> None:
    op = wire.from_wire(_sample(op_id, name))
    try:
        cluster.run(op)
    except errors.GanetiError as err:
        text = errors.text(err)
        assert text, op_id
        if op_id.startswith("OP_INSTANCE_") and "forthcoming" in text:
            assert "gnt-instance" in text
    assert cluster.problems == []
    assert cluster.held_locks() == []


#: Opcodes that need an instance that exists.
REAL = (
    "STARTUP",
    "SHUTDOWN",
    "REBOOT",
    "REINSTALL",
    "ACTIVATE_DISKS",
    "DEACTIVATE_DISKS",
    "GROW_DISK",
    "RECREATE_DISKS",
    "CONSOLE",
)


@pytest.mark.parametrize("verb", REAL)
def test_what_is_missing_is_named_with_the_command_that_sets_it(
    cluster: OneProcess, verb: str
) -> None:
    with pytest.raises(errors.OpPrereqError) as refused:
        cluster.run(wire.from_wire(_sample(f"OP_INSTANCE_{verb}", BARE)))
    text = errors.text(refused.value)
    for part in (
        f"a name (gnt-instance rename {BARE} NAME)",
        f"a node (gnt-instance failover --target-node NODE {BARE})",
        f"disks (gnt-instance modify --disk add:size=10G {BARE}",
        f"an OS (gnt-instance modify --os-type OS {BARE}",
        f"gnt-instance add --commit {BARE} creates it",
    ):
        assert part in text
    assert msgspec.structs.asdict(cluster.config.instances[BARE])["forthcoming"]
