"""What the master grants to nodes, and what it counts on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ganeti.config.store import Store
from ganeti.master.node_leases import NodeLeases
from ganeti.model.ids import NodeUuid
from ganeti.ops.services import LeaseEnd
from ganeti.recovery.lease import Grant, Stamp

NODE = NodeUuid("n2")


class Bench:
    """Leases over a configuration and a clock that the test sets."""

    def __init__(self) -> None:
        self.time = 100.0
        self.left: float | None = None
        cluster = SimpleNamespace(
            auto_fence_after=30,
            auto_failover_after=None,
            master_node="n1",
            find_recovery_pause=lambda _now: None,
        )
        self.cluster = cluster
        current = SimpleNamespace(
            cluster=cluster, nodes={NODE: 1}, ndparams=lambda _node: {"watchdog": "/dev/watchdog"}
        )
        store = cast(Store, SimpleNamespace(current=current))
        clock: Any = SimpleNamespace(monotonic=lambda: self.time, now=lambda: self.time)
        self.leases = NodeLeases(store, lambda: self.left, clock)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_node_gets_its_newest_stamp_back_and_its_watchdog(bench: Bench) -> None:
    assert bench.leases.grant(NODE) == Grant(None, 30, "/dev/watchdog")
    bench.leases.hear(NODE, 100, Stamp("boot", 7.0))
    bench.leases.hear(NODE, 100, Stamp("boot", 6.0))
    assert bench.leases.grant(NODE) == Grant(Stamp("boot", 7.0), 30, "/dev/watchdog")


def test_without_the_limit_nodes_need_no_lease(bench: Bench) -> None:
    bench.cluster.auto_fence_after = None
    bench.leases.hear(NODE, 100, Stamp("boot", 7.0))
    assert bench.leases.grant(NODE) == Grant(Stamp("boot", 7.0), 0, "/dev/watchdog")
    with bench.leases.hold_back(NODE) as end:
        assert end == LeaseEnd(None, watchdog=False)


def test_a_master_that_may_not_act_grants_nothing(bench: Bench) -> None:
    bench.left = -0.1
    assert bench.leases.grant(NODE) is None


def test_a_lease_that_is_held_back_is_over_after_its_time(bench: Bench) -> None:
    bench.leases.hear(NODE, 100, Stamp("boot", 7.0, armed=True))
    bench.leases.grant(NODE)
    bench.time = 110.0
    bench.leases.grant(NODE)  # the same stamp: the lease of the node is no longer by that
    with bench.leases.hold_back(NODE) as end:
        assert bench.leases.grant(NODE) is None
        assert end.watchdog
        assert end.over == pytest.approx(100 + 30 * 1.01 / 0.99)
    assert bench.leases.grant(NODE) is not None


def test_a_new_master_waits_for_the_leases_of_the_one_before(bench: Bench) -> None:
    bench.cluster.auto_failover_after = 15
    with bench.leases.hold_back(NODE) as end:
        assert end.over is not None
        assert end.over > 100 + 15 + 30


def hear(bench: Bench, seconds: float) -> None:
    """The node answers a call that was sent at this time."""
    bench.time = 100 + seconds
    bench.leases.hear(NODE, bench.time, Stamp("boot", seconds))


def test_in_a_pause_the_lease_is_shown_until_the_node_has_answered_its_release(
    bench: Bench,
) -> None:
    hear(bench, 1)
    bench.leases.grant(NODE)
    bench.cluster.find_recovery_pause = lambda _now: 1000.0
    assert bench.leases.describe(NODE).lease_left == pytest.approx(30 * 1.01 / 0.99)
    bench.leases.grant(NODE)
    assert bench.leases.describe(NODE).lease_left is not None
    hear(bench, 2)
    assert bench.leases.describe(NODE).lease_left is None
    bench.cluster.find_recovery_pause = lambda _now: None
    bench.leases.grant(NODE)
    assert bench.leases.describe(NODE).lease_left is not None


def test_in_a_pause_a_node_that_does_not_answer_has_no_lease_after_its_time(bench: Bench) -> None:
    hear(bench, 1)
    bench.leases.grant(NODE)
    bench.cluster.find_recovery_pause = lambda _now: 1000.0
    bench.time = 131.0
    assert bench.leases.describe(NODE).lease_left is not None
    bench.time = 132.0
    assert bench.leases.describe(NODE).lease_left is None


def test_a_master_that_stops_releases_nodes_for_good(bench: Bench) -> None:
    hear(bench, 1)
    bench.leases.begin_stop()
    assert bench.leases.grant(NODE) == Grant(Stamp("boot", 1.0), 0, "/dev/watchdog")
    assert not bench.leases.is_released(NODE)
    hear(bench, 2)
    assert bench.leases.is_released(NODE)
    assert bench.leases.grant(NODE) == Grant(Stamp("boot", 2.0), 0, "/dev/watchdog")


def test_silent_nodes_are_fenced_if_something_can_prove_their_death(bench: Bench) -> None:
    nodes = [NodeUuid("n1"), NODE, NodeUuid("n3")]
    assert bench.leases.find_silent(nodes, lambda _node: False) == []
    bench.leases.hear(NODE, 101.0, None)
    bench.time = 131.0
    for node in ("n1", "n3"):
        bench.leases.hear(NodeUuid(node), 131.0, None)
    assert bench.leases.find_silent(nodes, lambda _node: False) == []
    (found,) = bench.leases.find_silent(nodes, lambda _node: True)
    assert found.node == NODE
    assert bench.leases.grant(NODE) is None
    bench.leases.note_fence(NODE, begun=True)
    assert bench.leases.find_silent(nodes, lambda _node: True) == []


def test_a_node_that_may_be_booting_is_fenced_ten_minutes_after_the_boot_of_the_master(
    bench: Bench,
) -> None:
    nodes = [NodeUuid("n1"), NODE, NodeUuid("n3")]

    def find_fenced(moment: float) -> list[str]:
        bench.time = moment
        for node in ("n1", "n3"):
            bench.leases.hear(NodeUuid(node), moment, None)
        return [fence.node for fence in bench.leases.find_silent(nodes, lambda _node: True)]

    assert find_fenced(100.0) == []
    assert find_fenced(599.0) == []
    assert bench.leases.describe(NODE).may_boot
    assert bench.leases.describe(NODE).fenced_in == 1.0
    assert find_fenced(600.0) == [NODE]
    assert not bench.leases.describe(NODE).may_boot


def test_the_server_of_an_old_master_gets_no_time_to_boot_from_a_master_that_was_up_before(
    bench: Bench,
) -> None:
    bench.time = 5000.0
    nodes = [NodeUuid("n1"), NODE, NodeUuid("n3")]
    assert bench.leases.find_silent(nodes, lambda _node: True) == []
    bench.time = 5030.0
    for node in ("n1", "n3"):
        bench.leases.hear(NodeUuid(node), 5030.0, None)
    (found,) = bench.leases.find_silent(nodes, lambda _node: True)
    assert found.node == NODE
