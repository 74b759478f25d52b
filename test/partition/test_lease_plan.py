"""What the random schedules with leases stand on: plans, devices, and the look for guests."""

from __future__ import annotations

import io
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import guests
import power
import pytest
from lease_plan import Kind, make_plan
from net_cluster import Namespace, needs_networks

from ganeti.base import process
from ganeti.paths import Paths

NODES = 5
#: What a node whose node daemon does not act cannot do: end its guests.
NEED_HONESTY = {Kind.FREEZE_NODED, Kind.FREEZE_ALL, Kind.KILL_NODED, Kind.KILL_ALL}


def test_a_seed_says_the_whole_plan() -> None:
    plans = [make_plan(seed, NODES) for seed in range(50)]
    assert plans == [make_plan(seed, NODES) for seed in range(50)]
    assert len({plan.faults for plan in plans}) == len(plans)


def test_devices_lie_only_where_node_daemons_can_end_guests() -> None:
    plans = [make_plan(seed, NODES) for seed in range(200)]
    lying = [plan for plan in plans if "lies" in plan.modes.values()]
    assert 20 < len(lying) < 100
    assert not [p for p in lying if NEED_HONESTY & {fault.kind for fault in p.faults}]


def test_each_kind_of_fault_is_played() -> None:
    faults = [fault for seed in range(100) for fault in make_plan(seed, NODES).faults]
    assert {fault.kind for fault in faults} == set(Kind)
    assert min(fault.lasts for fault in faults) == 5
    assert max(fault.lasts for fault in faults) == 90


class Node:
    """A directory of guests with a name."""

    def __init__(self, directory: Path, short: str) -> None:
        self.short = short
        self.paths = Paths(directory / short)

    def begin(self, name: str) -> None:
        self.paths.fake_hypervisor.mkdir(parents=True, exist_ok=True)
        (self.paths.fake_hypervisor / name).touch()


class Cluster:
    def __init__(self, directory: Path) -> None:
        self.nodes = {n: Node(directory, f"node{n}") for n in (1, 2, 3)}


def test_a_guest_that_runs_twice_is_found(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.nodes[1].begin("web1")
    cluster.nodes[2].begin("web2")
    cluster.nodes[3].begin(".away-web1")
    assert guests.find_doubled(cluster) == {}  # type: ignore[arg-type]
    cluster.nodes[3].begin("web1")
    assert guests.find_doubled(cluster) == {"web1": ["node1", "node3"]}  # type: ignore[arg-type]


@pytest.fixture
def space(tmp_path: Path) -> Iterator[Namespace]:
    held = Namespace()
    power.holder_file(tmp_path, "node1").write_text(str(held.pid))
    yield held
    held.end()


@pytest.fixture
def frozen(space: Namespace) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the node, which stands still."""
    child = subprocess.Popen(space.enter(["sh", "-c", "echo; exec sleep 60"]), stdout=-1)
    assert child.stdout is not None
    assert child.stdout.read(1)
    os.kill(child.pid, signal.SIGSTOP)
    yield child
    child.kill()
    child.wait()
    child.stdout.close()


def call_agent(directory: Path, action: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"plug=node1\naction={action}\n"))
    return power.main([str(directory), "agent"])


@pytest.mark.root
@needs_networks()
@pytest.mark.parametrize(
    ("mode", "off", "status", "ended"),
    [("works", 0, 2, True), ("fails", 1, 1, False), ("lies", 0, 2, False)],
)
def test_a_device(
    mode: str,
    off: int,
    status: int,
    ended: bool,
    tmp_path: Path,
    frozen: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = Node(tmp_path, "node1")
    node.begin("web1")
    power.mode_file(tmp_path, "agent", "node1").write_text(mode)
    assert call_agent(tmp_path, "off", monkeypatch) == off
    assert call_agent(tmp_path, "status", monkeypatch) == status
    assert process.wait_exit(frozen.pid, 0) is ended
    assert (node.paths.fake_hypervisor / "web1").exists() is not ended
