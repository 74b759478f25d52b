"""Disks, instances and reservations through any series of operations, against a reference model.

After each step the configuration is sound, no lock is left, every disk has the place, size and
content that the model knows, and no file of a disk is anywhere else.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from examples import examples
from hypothesis import HealthCheck, Phase
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from one_process import OneProcess

from ganeti import errors
from ganeti.model.enums import DiskTemplate
from ganeti.opcodes.devices import DiskChange, DiskParams
from ganeti.opcodes.disk import OpDiskCreate, OpDiskDetach, OpDiskGrow, OpDiskRemove
from ganeti.opcodes.enums import DdmFull, InstCreateMode
from ganeti.opcodes.instance import OpInstanceRemove, OpInstanceSetParams
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.opcodes.instance_disks import OpInstanceGrowDisk
from ganeti.opcodes.instance_move import OpInstanceFailover, OpInstanceMove
from ganeti.opcodes.reservation import OpReservationAdd, OpReservationExpire

#: Seconds for which places are kept.
LIMIT = 86400.0
KINDS = st.sampled_from(["file", "sharedfile"])


@dataclass
class ModelDisk:
    size: int
    kind: str
    #: number of the node, 0 for a disk of all nodes
    node: int


@dataclass
class ModelInstance:
    node: int
    disks: list[str] = field(default_factory=list)


@dataclass
class ModelReservation:
    node: int
    kind: str
    sizes: list[int]
    expires: bool
    expired: bool = False


class DiskMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._directory = tempfile.TemporaryDirectory()
        self.cluster = OneProcess(Path(self._directory.name) / "cluster")
        self.instances: dict[str, ModelInstance] = {}
        self.reserved: dict[str, ModelReservation] = {}
        self.disks: dict[str, ModelDisk] = {}
        self.new_names = (f"i{number}.example.com" for number in range(1, 1000))

    def teardown(self) -> None:
        self.cluster.close()
        self._directory.cleanup()

    # helpers -----------------------------------------------------------------------------

    @property
    def free(self) -> list[str]:
        used = {uuid for item in self.instances.values() for uuid in item.disks}
        return [uuid for uuid in self.disks if uuid not in used]

    def an_instance(self, data: st.DataObject) -> tuple[str, ModelInstance]:
        name = data.draw(st.sampled_from(list(self.instances)), label="instance")
        return name, self.instances[name]

    def kinds(self, item: ModelInstance) -> set[str]:
        return {self.disks[uuid].kind for uuid in item.disks}

    def modify(self, name: str, *changes: DiskChange, **more: Any) -> None:
        self.cluster.run(OpInstanceSetParams(instance_name=name, disks=list(changes), **more))

    def check_refused(self, *args: Any, **kwargs: Any) -> None:
        with pytest.raises(errors.OpPrereqError):
            self.modify(*args, **kwargs)

    def learn(self, name: str, index: int, size: int, kind: str, node: int) -> None:
        """Take a new disk into the model, and write on it."""
        uuid = self.cluster.instance(name).disks[index]
        assert uuid not in self.disks
        self.disks[uuid] = ModelDisk(size, kind, 0 if kind == "sharedfile" else node)
        self.instances[name].disks.insert(index, uuid)
        self.cluster.mark(uuid)

    # rules -------------------------------------------------------------------------------

    @precondition(lambda self: len(self.instances) < 4)
    @rule(
        kind=KINDS,
        sizes=st.lists(st.integers(1, 6), min_size=1, max_size=3),
        node=st.integers(1, 3),
    )
    def add(self, kind: str, sizes: list[int], node: int) -> None:
        name = next(self.new_names)
        self.cluster.run(
            OpInstanceCreate(
                instance_name=name,
                mode=InstCreateMode.CREATE,
                os_type="noop",
                start=False,
                disks=[DiskParams(size=size) for size in sizes],
                nics=[],
                disk_template=DiskTemplate(kind),
                pnode=f"node{node}.example.com",
            )
        )
        self.instances[name] = ModelInstance(node)
        for index, size in enumerate(sizes):
            self.learn(name, index, size, kind, node)

    @precondition(lambda self: self.instances)
    @rule(data=st.data(), size=st.integers(1, 6))
    def add_disk(self, data: st.DataObject, size: int) -> None:
        name, item = self.an_instance(data)
        index = data.draw(st.integers(0, len(item.disks)), label="index")
        change = DiskChange(DdmFull.ADD, index, DiskParams(size=size))
        if len(self.kinds(item)) != 1:
            self.check_refused(name, change)
            return
        self.modify(name, change)
        self.learn(name, index, size, *self.kinds(item), item.node)

    @precondition(lambda self: any(item.disks for item in self.instances.values()))
    @rule(data=st.data(), action=st.sampled_from([DdmFull.DETACH, DdmFull.REMOVE]))
    def take(self, data: st.DataObject, action: DdmFull) -> None:
        name, item = self.an_instance(data)
        if not item.disks:
            return
        index = data.draw(st.integers(0, len(item.disks) - 1), label="index")
        by = data.draw(st.sampled_from([index, item.disks[index]]), label="named by")
        self.modify(name, DiskChange(action, by, DiskParams()))
        uuid = item.disks.pop(index)
        if action is DdmFull.REMOVE:
            del self.disks[uuid]

    @precondition(lambda self: self.instances and self.disks)
    @rule(data=st.data())
    def attach(self, data: st.DataObject) -> None:
        """Any disk, one that is in use as well."""
        name, item = self.an_instance(data)
        uuid = data.draw(st.sampled_from(self.free or list(self.disks)), label="disk")
        index = data.draw(st.integers(0, len(item.disks)), label="index")
        change = DiskChange(DdmFull.ATTACH, index, DiskParams(ext={"uuid": uuid}))
        if uuid not in self.free or self.disks[uuid].node not in (0, item.node):
            self.check_refused(name, change)
            return
        self.modify(name, change)
        item.disks.insert(index, uuid)

    @precondition(lambda self: len(self.disks) < 12)
    @rule(kind=KINDS, size=st.integers(1, 6), node=st.integers(1, 3))
    def make_disk(self, kind: str, size: int, node: int) -> None:
        """A disk of nobody."""
        uuid = self.cluster.run(
            OpDiskCreate(
                disk_template=DiskTemplate(kind),
                disk=DiskParams(size=size),
                nodes=[] if kind == "sharedfile" else [f"node{node}.example.com"],
            )
        )
        self.disks[uuid] = ModelDisk(size, kind, 0 if kind == "sharedfile" else node)
        self.cluster.mark(uuid)

    @precondition(lambda self: self.disks)
    @rule(data=st.data())
    def remove_disk(self, data: st.DataObject) -> None:
        """Any disk; one that is in use is refused."""
        uuid = data.draw(st.sampled_from(list(self.disks)), label="disk")
        if uuid not in self.free:
            with pytest.raises(errors.OpPrereqError):
                self.cluster.run(OpDiskRemove(disk_name=uuid))
            return
        self.cluster.run(OpDiskRemove(disk_name=uuid))
        del self.disks[uuid]

    @precondition(lambda self: self.disks)
    @rule(data=st.data(), amount=st.integers(1, 4))
    def grow_disk(self, data: st.DataObject, amount: int) -> None:
        uuid = data.draw(st.sampled_from(list(self.disks)), label="disk")
        self.cluster.run(OpDiskGrow(disk_name=uuid, amount=amount))
        self.disks[uuid].size += amount

    @precondition(lambda self: any(item.disks for item in self.instances.values()))
    @rule(data=st.data())
    def detach_disk(self, data: st.DataObject) -> None:
        used = [uuid for uuid in self.disks if uuid not in self.free]
        uuid = data.draw(st.sampled_from(used), label="disk")
        self.cluster.run(OpDiskDetach(disk_name=uuid))
        [owner] = [item for item in self.instances.values() if uuid in item.disks]
        owner.disks.remove(uuid)

    @precondition(lambda self: any(item.disks for item in self.instances.values()))
    @rule(data=st.data(), amount=st.integers(1, 4))
    def grow(self, data: st.DataObject, amount: int) -> None:
        name, item = self.an_instance(data)
        if not item.disks:
            return
        index = data.draw(st.integers(0, len(item.disks) - 1), label="index")
        self.cluster.run(OpInstanceGrowDisk(instance_name=name, disk=index, amount=amount))
        self.disks[item.disks[index]].size += amount

    @precondition(lambda self: self.instances)
    @rule(data=st.data(), kind=KINDS)
    def convert(self, data: st.DataObject, kind: str) -> None:
        name, item = self.an_instance(data)
        if not item.disks or self.kinds(item) == {kind}:
            self.check_refused(name, disk_template=DiskTemplate(kind))
            return
        self.modify(name, disk_template=DiskTemplate(kind))
        for uuid in item.disks:
            self.disks[uuid].kind = kind
            self.disks[uuid].node = 0 if kind == "sharedfile" else item.node

    @precondition(lambda self: self.instances)
    @rule(data=st.data(), node=st.integers(1, 3))
    def move(self, data: st.DataObject, node: int) -> None:
        """What is on one node only is copied; disks of all nodes stay as they are."""
        name, item = self.an_instance(data)
        op = OpInstanceMove(instance_name=name, target_node=f"node{node}.example.com")
        if node == item.node or "file" not in self.kinds(item):
            with pytest.raises(errors.OpPrereqError):
                self.cluster.run(op)
            return
        self.cluster.run(op)
        item.node = node
        for uuid in item.disks:
            if self.disks[uuid].kind == "file":
                self.disks[uuid].node = node

    @precondition(lambda self: self.instances)
    @rule(data=st.data(), node=st.integers(1, 3))
    def fail_over(self, data: st.DataObject, node: int) -> None:
        """Wherever its disks are too; without disks anywhere."""
        name, item = self.an_instance(data)
        op = OpInstanceFailover(instance_name=name, target_node=f"node{node}.example.com")
        if node == item.node or self.kinds(item) - {"sharedfile"}:
            with pytest.raises(errors.OpPrereqError):
                self.cluster.run(op)
            return
        self.cluster.run(op)
        item.node = node

    @precondition(lambda self: self.instances)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        name, item = self.an_instance(data)
        self.cluster.run(OpInstanceRemove(instance_name=name))
        for uuid in item.disks:
            del self.disks[uuid]
        del self.instances[name]

    @precondition(lambda self: len(self.reserved) < 3)
    @rule(
        kind=KINDS,
        sizes=st.lists(st.integers(1, 6), min_size=1, max_size=3),
        node=st.integers(1, 3),
        expires=st.booleans(),
    )
    def reserve(self, kind: str, sizes: list[int], node: int, expires: bool) -> None:
        name = next(self.new_names)
        wanted = OpInstanceCreate(
            instance_name=name,
            mode=InstCreateMode.CREATE,
            os_type="noop",
            disks=[DiskParams(size=size) for size in sizes],
            nics=[],
            disk_template=DiskTemplate(kind),
            pnode=f"node{node}.example.com",
        )
        end = self.cluster.clock.now() + LIMIT if expires else None
        self.cluster.run(OpReservationAdd(instances=[wanted], expires=end))
        self.reserved[name] = ModelReservation(node, kind, sizes, expires)

    @precondition(lambda self: self.reserved)
    @rule()
    def time_passes(self) -> None:
        self.cluster.clock.ahead += LIMIT + 1
        for item in self.reserved.values():
            item.expired = item.expires

    @precondition(lambda self: self.reserved)
    @rule(data=st.data(), node=st.integers(1, 3))
    def bring_reservation_elsewhere(self, data: st.DataObject, node: int) -> None:
        """Whatever its disks are: there is nothing to copy."""
        name = data.draw(st.sampled_from(list(self.reserved)), label="reservation")
        target = f"node{node}.example.com"
        self.cluster.run(OpInstanceFailover(instance_name=name, target_node=target))
        self.reserved[name].node = node

    @precondition(lambda self: self.reserved)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        """A reservation can always become an instance, one whose time is over as well."""
        name = data.draw(st.sampled_from(list(self.reserved)), label="reservation")
        self.cluster.run(
            OpInstanceCreate(
                instance_name=name,
                mode=InstCreateMode.CREATE,
                disks=[],
                nics=[],
                commit=True,
                start=False,
            )
        )
        item = self.reserved.pop(name)
        self.instances[name] = ModelInstance(item.node)
        for index, size in enumerate(item.sizes):
            self.learn(name, index, size, item.kind, item.node)

    @precondition(lambda self: self.reserved)
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        """The watcher asks for all; only those whose time is over go."""
        name = data.draw(st.sampled_from(list(self.reserved)), label="reservation")
        expired = self.cluster.run(OpReservationExpire(instance_name=name))
        assert expired is self.reserved[name].expired
        if expired:
            del self.reserved[name]

    @precondition(lambda self: self.reserved)
    @rule(data=st.data())
    def remove_reservation(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(list(self.reserved)), label="reservation")
        self.cluster.run(OpInstanceRemove(instance_name=name))
        del self.reserved[name]

    @rule()
    def master_begins_again(self) -> None:
        self.cluster.new_master()

    # what always holds -------------------------------------------------------------------

    @invariant()
    def configuration_is_sound(self) -> None:
        assert self.cluster.problems == []
        assert self.cluster.held_locks() == []

    @invariant()
    def all_is_as_the_model_says(self) -> None:
        config = self.cluster.config
        real = [item for item in config.instances.values() if not item.forthcoming]
        assert {item.name: list(item.disks) for item in real} == {
            name: item.disks for name, item in self.instances.items()
        }
        disks = [disk for disk in config.disks.values() if not disk.forthcoming]
        assert {disk.uuid: (disk.size, str(disk.dev_type)) for disk in disks} == {
            uuid: (disk.size, disk.kind) for uuid, disk in self.disks.items()
        }
        for name, item in self.instances.items():
            instance = self.cluster.instance(name)
            assert instance.primary_node == self.cluster.node(item.node).uuid
            names = [config.disks[uuid].iv_name for uuid in item.disks]
            assert names == [f"disk/{index}" for index in range(len(names))]

    @invariant()
    def reservations_are_as_the_model_says(self) -> None:
        config = self.cluster.config
        found = {item.name: item for item in config.instances.values() if item.forthcoming}
        assert list(found) == list(self.reserved)
        for name, item in self.reserved.items():
            assert found[name].primary_node == self.cluster.node(item.node).uuid
            disks = config.disks_of(found[name])
            assert [(disk.size, str(disk.dev_type)) for disk in disks] == [
                (size, item.kind) for size in item.sizes
            ]
            assert all(disk.forthcoming for disk in disks)

    @invariant()
    def content_is_where_it_belongs(self) -> None:
        expected = []
        for uuid, disk in self.disks.items():
            place = self.cluster.image(uuid)
            assert place.stat().st_size == disk.size * 1024 * 1024
            assert self.cluster.marked(uuid)
            if disk.node:
                assert place.is_relative_to(self.cluster.paths[f"node{disk.node}"].root)
            expected.append(place.resolve())
        assert [path.resolve() for path in self.cluster.images()] == sorted(expected)


@pytest.mark.usefixtures("skip_fsync")
def test_disks_through_any_series_of_operations() -> None:
    run_state_machine_as_test(
        DiskMachine,
        settings=examples(
            8,
            stateful_step_count=30,
            suppress_health_check=list(HealthCheck),
            # a series that fails is told as it is: to shorten it takes minutes
            phases=[Phase.generate],
        ),
    )
