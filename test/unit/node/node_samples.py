"""Objects that the tests of the node side send to it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import msgspec

from ganeti.base import jsonio
from ganeti.paths import Paths
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import NodeDisk, NodeInstance, RightState, RunRight

INSTANCE = "web1.example.com"
#: Every instance that a test makes has a newer right to run than the one before.
EPOCHS = itertools.count(1)
DISK_UUID = "11111111-2222-3333-4444-555555555555"


def disk(paths: Paths, index: int = 0, **changes: Any) -> NodeDisk:
    """A file disk of 4 MiB."""
    path = paths.file_storage / INSTANCE / f"{DISK_UUID}.file.disk{index}"
    facts: dict[str, Any] = {
        "uuid": DISK_UUID,
        "dev_type": "file",
        "logical_id": ("loop", str(path)),
        "iv_name": f"disk/{index}",
        "size": 4,
    }
    return NodeDisk(**{**facts, **changes})


def instance(*disks: NodeDisk, **changes: Any) -> NodeInstance:
    """An instance for the fake hypervisor."""
    facts: dict[str, Any] = {
        "uuid": "99999999-2222-3333-4444-555555555555",
        "name": INSTANCE,
        "primary_node": "node1-uuid",
        "hypervisor": "fake",
        "hvparams": {"migration_mode": "live"},
        "beparams": {"maxmem": 256, "minmem": 128, "vcpus": 2},
        "disks_info": disks,
        "run_epoch": (1, next(EPOCHS)),
    }
    return NodeInstance(**{**facts, **changes})


def prepare_instance(node: NodeCalls, paths: Paths) -> NodeInstance:
    """An instance with one assembled disk."""
    item = disk(paths)
    made = instance(item)
    node.blockdev_create(item, 4, INSTANCE, True, "", False)
    node.blockdev_assemble(item, made, True, 0)
    return made


def say(node: NodeCalls, item: NodeInstance, state: RightState) -> None:
    """Record on a node what the master decided about an instance."""
    right = RunRight(
        uuid=item.uuid,
        name=item.name,
        epoch=(1, next(EPOCHS)),
        state=state,
        peer="node2.example.com",
    )
    node.run_right_set(right, "fake")


def renew_right(item: NodeInstance) -> NodeInstance:
    """The same instance with a newer right to run it."""
    return msgspec.structs.replace(item, run_epoch=(1, next(EPOCHS)))


def misbehave(paths: Paths, **rules: Any) -> None:
    """Script the fake hypervisor: ``misbehave(paths, stop={"*": {"lie": True}})``."""
    (paths.conf / "fake-hypervisor.json").write_text(jsonio.dumps(rules))


def empty_root(directory: Path) -> Paths:
    """A root with the directories that set-up makes, and one for file disks."""
    where = Paths(directory / "root")
    for each in (where.data, where.run, where.log, where.conf, where.file_storage):
        each.mkdir(parents=True, mode=0o750)
    where.ssconf("file_storage_dir").write_text(f"{where.file_storage}\n")
    return where
