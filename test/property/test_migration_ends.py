"""A migration is broken off at every call: the guest runs on exactly one node, which is on record.

Both nodes are real node handlers with the fake hypervisor below roots of their own; only the wire
between master and nodes is replaced, by one that loses calls or answers, ends the master, or ends
a guest. Whatever happens, the guest never runs twice, and the next master settles it.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from local_node import LocalNode

from ganeti import errors
from ganeti.base.clock import SYSTEM
from ganeti.bootstrap import defaults
from ganeti.bootstrap.settings import InitSettings
from ganeti.config.changes import Draft
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.enums import AdminState, HypervisorName
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.node.context import NodeContext
from ganeti.opcodes.instance_move import OpInstanceMigrate
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.planning.migration_verdict import Source, Target, Verdict, verdict
from ganeti.ops.steps.relocation.cleanup import Cleanup
from ganeti.ops.steps.relocation.migration import Migration
from ganeti.paths import Paths
from ganeti.rpc.client import Answer

pytestmark = pytest.mark.usefixtures("skip_fsync", "skip_patience")

WEB = "web1.example.com"
#: Outcome of each fault at each call; s is the source, t the target.
TABLE = Path(__file__).parents[1] / "recorded" / "migration_faults.json"
#: More calls than any migration makes.
ENOUGH = 60


class MasterDied(BaseException):
    """Ends the operation as a kill does: nothing of it runs any more."""


class World:
    """Two nodes, a configuration, and a wire on which one thing goes wrong."""

    def __init__(self, root: Path) -> None:
        self.names = {"s": "node2.example.com", "t": "node3.example.com"}
        self.paths = {key: Paths(root / key) for key in self.names}
        self.handlers: dict[str, LocalNode] = {}
        for key, name in self.names.items():
            where = self.paths[key]
            for directory in (where.data, where.run, where.log, where.conf):
                directory.mkdir(parents=True)
            self.handlers[key] = LocalNode(NodeContext(where, name))
        self.config = _config(self.names)
        self.calls = 0
        self.made: list[str] = []
        self.fault_at = ENOUGH
        self.fault: Callable[[World, str, Callable[[], Any]], Any] = lambda _w, _n, call: call()
        self.down: set[str] = set()
        self._numbers = itertools.count(1)
        self.term = 1

    # what ctx gives ------------------------------------------------------------------------

    @property
    def current(self) -> Config:
        return self.config

    def change(self, _name: str, _author: Any, edit: Callable[[Draft], None]) -> None:
        draft = Draft(self.config, 2.0)
        edit(draft)
        self.config = draft.result()

    def run_epoch(self) -> tuple[int, int]:
        return self.term, next(self._numbers)

    def limit_time(self, _seconds: float) -> World:
        return self

    def call_one(self, node: Node, method: Any, *args: Any) -> Any:
        call = getattr(self.handlers[node.uuid], method.__name__)
        if node.uuid in self.down:
            raise errors.RpcError(f"node {node.name}: does not answer")
        self.calls += 1
        self.made.append(f"{method.__name__} at the {'source' if node.uuid == 's' else 'target'}")
        try:
            if self.calls == self.fault_at:
                return self.fault(self, node.uuid, lambda: call(*args))
            return call(*args)
        finally:
            assert len(self.running()) < 2, "it runs twice"

    def call_many(self, nodes: list[Node], method: Any, *args: Any) -> dict[str, Answer[Any]]:
        found = {}
        for node in nodes:
            try:
                found[node.uuid] = Answer(node, self.call_one(node, method, *args))
            except errors.GanetiError as err:
                found[node.uuid] = Answer(node, error=err)
        return found

    # what is asserted on -------------------------------------------------------------------

    def running(self) -> list[str]:
        return [key for key, where in self.paths.items() if (where.fake_hypervisor / WEB).exists()]

    def kill_guest(self, key: str) -> None:
        """QEMU of this end dies, whether the guest runs in it or waits."""
        where = self.paths[key].fake_hypervisor
        for name in (WEB, f".away-{WEB}", f".awaited-{WEB}"):
            (where / name).unlink(missing_ok=True)

    def list_unsettled(self) -> list[Any]:
        return [right for one in self.handlers.values() for right in one.run_rights([])]

    @property
    def instance(self) -> Instance:
        return self.config.instances["web"]

    def context(self) -> Context:
        job = SimpleNamespace(
            job_id=1, submitter=None, log=lambda _text: None, cancel_asked=threading.Event()
        )
        wire: Any = self
        return Context(
            job=job,
            store=wire,
            rpc=wire,
            locks=wire,
            claims=wire,  # type: ignore[arg-type]
            clock=SYSTEM,
            paths=self.paths["s"],
            services=wire,
        )

    def new_master(self) -> None:
        self.term += 1
        self.fault_at = ENOUGH
        self.down.clear()

    def start(self, key: str) -> None:
        wire = annotate.instance(self.config, self.instance, run_epoch=self.run_epoch())
        self.handlers[key].instance_start(wire, False, [])

    def migrate(self, *, live: bool = True) -> None:
        op = OpInstanceMigrate(instance_name=WEB)
        ctx = self.context()
        Migration(ctx, self.instance, self.config.nodes["t"], op, live=live).run()

    def clean_up(self) -> None:
        op = OpInstanceMigrate(instance_name=WEB, cleanup=True)
        Cleanup(self.context(), self.instance, op, force=False).run()


def _config(names: dict[str, str]) -> Config:
    data = defaults.configuration(
        InitSettings(cluster_name="c.example.com", enabled_hypervisors=["fake"]),
        host="node1.example.com",
        address="192.0.2.1",
        master_ip="192.0.2.254",
        certificate_digest="AA",
        now=1.0,
    )
    [master] = data.nodes.values()
    away = base.replace(master, vm_capable=False)
    nodes = {
        key: Node(
            uuid=key,
            name=name,
            group=master.group,
            primary_ip=f"192.0.2.{number}",
            secondary_ip=f"192.0.2.{number}",
        )
        for number, (key, name) in enumerate(names.items(), 2)
    }
    web = Instance(
        uuid="web",
        name=WEB,
        primary_node=NodeUuid("s"),
        hypervisor=HypervisorName.FAKE,
        admin_state=AdminState.UP,
    )
    return Config(base.replace(data, nodes={away.uuid: away, **nodes}, instances={"web": web}))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return start_world(tmp_path)


def start_world(root: Path) -> World:
    made = World(root)
    made.start("s")
    assert made.running() == ["s"]
    return made


# what goes wrong ----------------------------------------------------------------------------------


def lose_call(world: World, _node: str, _call: Callable[[], Any]) -> Any:
    raise errors.RpcError("the call was lost")


def lose_answer(world: World, _node: str, call: Callable[[], Any]) -> Any:
    call()
    raise errors.RpcError("the answer was lost")


def node_goes_dark(world: World, node: str, call: Callable[[], Any]) -> Any:
    call()
    world.down.add(node)
    raise errors.RpcError("the node went dark")


def master_dies_before(world: World, _node: str, _call: Callable[[], Any]) -> Any:
    raise MasterDied


def master_dies_after(world: World, _node: str, call: Callable[[], Any]) -> Any:
    call()
    raise MasterDied


def source_dies(world: World, _node: str, call: Callable[[], Any]) -> Any:
    world.kill_guest("s")
    return call()


def target_dies(world: World, _node: str, call: Callable[[], Any]) -> Any:
    world.kill_guest("t")
    return call()


def target_and_master_die(world: World, _node: str, call: Callable[[], Any]) -> Any:
    call()
    world.kill_guest("t")
    raise MasterDied


FAULTS = [
    lose_call,
    lose_answer,
    node_goes_dark,
    master_dies_before,
    master_dies_after,
    source_dies,
    target_dies,
    target_and_master_die,
]


DEATHS = (source_dies, target_dies, target_and_master_die)


@pytest.mark.parametrize("live", [True, False], ids=["live", "still"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_broken_off_at_every_call(tmp_path: Path, fault: Any, live: bool) -> None:
    whole = start_world(tmp_path / "whole")
    whole.migrate(live=live)
    assert whole.running() == ["t"]
    assert whole.calls > 10
    rows = []
    for number in range(1, whole.calls + 1):
        world = start_world(tmp_path / str(number))
        world.fault_at, world.fault = number, fault
        failed: BaseException | None = None
        try:
            world.migrate(live=live)
        except (errors.GanetiError, MasterDied) as err:
            failed = err
        assert len(world.running()) <= 1, number
        if failed is None and fault not in DEATHS:
            assert world.running() == [world.instance.primary_node], number
        after = world.running()
        world.new_master()
        world.clean_up()
        if fault in DEATHS and not world.running():
            # It died once it had arrived, as any guest may; it is started where it belongs.
            world.start(world.instance.primary_node)
        assert world.running() == [world.instance.primary_node], number
        assert world.list_unsettled() == [], number
        rows.append([whole.made[number - 1], after, world.instance.primary_node])
        # and it can go on living
        world.new_master()
        other = {"s": "t", "t": "s"}[world.instance.primary_node]
        ctx, op = world.context(), OpInstanceMigrate(instance_name=WEB)
        Migration(ctx, world.instance, world.config.nodes[other], op, live=True).run()
        assert world.running() == [other], number
    check_recorded(fault.__name__ + ("" if live else " while it is paused"), rows)


def check_recorded(fault: str, rows: list[list[Any]]) -> None:
    """Compare with the table of outcomes: call, where it ran then, where it runs once settled."""
    known = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    if os.environ.get("UPDATE_RECORDED"):
        lines = {**known, fault: rows}
        TABLE.write_text(json.dumps(lines, indent=1, sort_keys=True) + "\n")
        return
    assert rows == known[fault]


def test_two_faults_in_a_row(world: World) -> None:
    """The clean-up is broken off as well, at every of its calls."""
    world.migrate()
    for first, second in itertools.product(range(3, world.calls + 1), range(1, 12, 2)):
        fresh = start_world(world.paths["s"].root.parent / f"{first}-{second}")
        fresh.fault_at, fresh.fault = first, master_dies_after
        with pytest.raises(MasterDied):
            fresh.migrate()
        fresh.new_master()
        fresh.calls, fresh.fault_at, fresh.fault = 0, second, master_dies_after
        try:
            fresh.clean_up()
        except MasterDied:
            fresh.new_master()
            fresh.clean_up()
        assert fresh.running() == [fresh.instance.primary_node], (first, second)
        assert fresh.list_unsettled() == [], (first, second)


# the decision ------------------------------------------------------------------------------------


@given(st.sampled_from(Target), st.sampled_from(Source))
def test_the_verdict_never_favours_a_node_beside_a_copy_that_may_run(
    target: Target, source: Source
) -> None:
    found = verdict(target, source)
    may_run_there = target in (Target.RUNS, Target.UNKNOWN)
    may_run_here = source in (Source.RUNS, Source.KEPT, Source.UNKNOWN)
    if found in (Verdict.SOURCE, Verdict.ENDED_SOURCE):
        # KEPT is the proof that the target never got all of it
        assert not may_run_there or source is Source.KEPT
    if found is Verdict.TARGET:
        # a source that does not answer has given everything away: it is paused
        assert source not in (Source.RUNS, Source.KEPT)
    if found in (Verdict.ENDED_SOURCE, Verdict.ENDED_TARGET):
        assert not may_run_here
    if source in (Source.RUNS, Source.KEPT) and target is Target.RUNS:
        assert found is Verdict.TWICE
