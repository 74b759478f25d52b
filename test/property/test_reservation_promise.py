"""Whatever happens between, each reservation can be committed: its memory is there.

The nodes' memory is what the fake hypervisor is told to say: all of it less what runs.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from one_process import OneProcess

from ganeti import errors
from ganeti.model.enums import DiskTemplate
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.instance import OpInstanceRemove, OpInstanceSetParams, OpInstanceStartup
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.opcodes.instance_move import OpInstanceFailover

TOTAL = 1000
NODES = ("node1", "node2")

ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(
            (
                "reserve",
                "reserve",
                "reserve",
                "create",
                "stopped",
                "start",
                "commit",
                "remove",
                "move",
                "grow",
            )
        ),
        st.sampled_from(NODES),
        st.sampled_from((150, 250, 400)),
        st.integers(0, 9),
    ),
    min_size=6,
    max_size=16,
)


class Model:
    """The cluster, and memory that follows what runs."""

    def __init__(self, cluster: OneProcess) -> None:
        self.cluster = cluster
        self._names = (f"i{n}.example.com" for n in itertools.count(1))
        self.write_limits()

    def clear(self) -> None:
        for instance in list(self.cluster.config.instances.values()):
            self.cluster.run(OpInstanceRemove(instance_name=instance.name))
        self.write_limits()

    def free(self, node: str) -> int:
        config = self.cluster.config
        used = sum(
            int(config.beparams(item)["maxmem"])
            for item in config.instances.values()
            if node in self.cluster.running(item.name)
        )
        return TOTAL - used

    def sum_reserved(self, node: str) -> int:
        """MiB that the reservations of a node need, added up anew."""
        config = self.cluster.config
        uuid = config.node(f"{node}.example.com").uuid
        return sum(
            int(config.beparams(item)["maxmem"])
            for item in config.instances.values()
            if item.forthcoming and item.primary_node == uuid
        )

    def write_limits(self) -> None:
        for node in NODES:
            rules = {"memory_free": self.free(node), "memory_total": TOTAL}
            path = self.cluster.paths[node].conf / "fake-hypervisor.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"node_info": {"*": {"lie": rules}}}))

    def do(self, action: str, node: str, memory: int, which: int) -> None:
        """One step; it may be refused."""
        all_of = sorted(self.cluster.config.instances.values(), key=lambda item: item.name)
        reserved = [item.name for item in all_of if item.forthcoming]
        real = [item.name for item in all_of if not item.forthcoming]
        some = reserved if action in ("commit", "move", "grow") else real
        if action == "remove":
            some = [*reserved, *real]
        name = some[which % len(some)] if some else ""
        try:
            if action in ("reserve", "create", "stopped"):
                self.cluster.run(_make_creation(next(self._names), node, memory, action))
            elif name and action == "start":
                self.cluster.run(OpInstanceStartup(instance_name=name))
            elif name and action == "commit":
                self.cluster.run(commit(name))
            elif name and action == "remove":
                self.cluster.run(OpInstanceRemove(instance_name=name))
            elif name and action == "move":
                target = f"{node}.example.com"
                self.cluster.run(OpInstanceFailover(instance_name=name, target_node=target))
            elif name and action == "grow":
                given = {"memory": memory}
                self.cluster.run(OpInstanceSetParams(instance_name=name, beparams=given))
        except errors.OpPrereqError:
            if action == "commit":
                raise
        self.write_limits()


def _make_creation(name: str, node: str, memory: int, action: str) -> OpInstanceCreate:
    return OpInstanceCreate(
        instance_name=name,
        mode=InstCreateMode.CREATE,
        disks=[],
        nics=[],
        os_type="noop",
        disk_template=DiskTemplate.DISKLESS,
        pnode=f"{node}.example.com",
        beparams={"memory": memory},
        forthcoming=action == "reserve",
        start=action != "stopped",
    )


def commit(name: str) -> OpInstanceCreate:
    return OpInstanceCreate(
        instance_name=name, mode=InstCreateMode.CREATE, disks=[], nics=[], commit=True
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    cluster = OneProcess(Path(tmp_path_factory.mktemp("promise") / "cluster"), count=2)
    patch = pytest.MonkeyPatch()
    # Durability has tests of its own; here it only takes time.
    patch.setattr("os.fsync", lambda _fd: None)
    yield Model(cluster)
    patch.undo()
    cluster.close()


@examples(15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=ACTIONS, seed=st.integers(0, 1000))
def test_all_reservations_can_be_committed_in_any_order(
    model: Model, actions: list[tuple[str, str, int, int]], seed: int
) -> None:
    model.clear()
    cluster = model.cluster
    for action in actions:
        model.do(*action)
        for short in NODES:
            assert model.sum_reserved(short) <= model.free(short)
    names = sorted(item.name for item in cluster.config.forthcoming)
    random.Random(seed).shuffle(names)
    for name in names:
        cluster.run(commit(name))
        model.write_limits()
        assert cluster.running(name)
    assert not cluster.config.forthcoming
