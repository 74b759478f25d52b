"""A master falls silent, and a candidate takes its place without a person.

All scenarios run on one cluster of real daemons, one after the other. ``AUTO_FAILOVER=all`` runs
them all (``make test-partition`` does); without it only the first one runs.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator

import pytest
from net_cluster import NetCluster, NetNode, needs_networks
from waiting import wait_for

from ganeti import constants

#: Seconds of silence that the cluster allows, and until somebody must be the master after that.
LIMIT = 15
LATEST = 90.0

ALL = os.environ.get("AUTO_FAILOVER") == "all"

pytestmark = [
    pytest.mark.long,
    pytest.mark.root,
    needs_networks(),
]
in_full = pytest.mark.skipif(not ALL, reason="takes a minute; make test-partition runs it")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetCluster]:
    made = NetCluster(tmp_path_factory.mktemp("auto") / "c", 3)
    for node in made.nodes.values():
        (node.root / "srv/ganeti/shared-file-storage").mkdir(exist_ok=True)
    try:
        done = made.nodes[1].gnt(f"cluster modify --auto-failover-after={LIMIT}")
        assert done.code == 0, done.err
        yield made
    finally:
        made.destroy()


def find_master(cluster: NetCluster, without: NetNode | None = None) -> NetNode | None:
    """The node whose master daemon serves; ``without`` is not looked at."""
    for node in cluster.nodes.values():
        if node is without or node.pid(constants.MASTERD) is None:
            continue
        if node.gnt("cluster info").code == 0:
            return node
    return None


def demand_master(cluster: NetCluster, without: NetNode | None = None) -> NetNode:
    """The master, as soon as there is one."""
    wait_for(
        lambda: find_master(cluster, without) is not None,
        lambda: "no master\n" + cluster.describe() + read_logs(cluster.nodes.values()),
        LATEST,
        pause=0.5,
    )
    found = find_master(cluster, without)
    assert found is not None, cluster.describe()
    return found


def wait_for_another(cluster: NetCluster, old: NetNode) -> NetNode:
    """Wait until another node is the master and takes a job."""
    new = demand_master(cluster, without=old)
    done = new.gnt(f"cluster add-tags after-{old.short}")
    assert done.code == 0, done.err
    return new


def wait_for_end(node: NetNode, seconds: float = 2.0 * LIMIT) -> None:
    """Wait until the master daemon of a node has ended."""
    wait_for(
        lambda: node.pid(constants.MASTERD) is None, f"{node.short} continues as master", seconds
    )


def wait_for_log(nodes: Iterable[NetNode], text: str) -> None:
    """Wait until the node daemon of one of these nodes says something."""
    logs = [node.paths.log / "node-daemon.log" for node in nodes]
    wait_for(lambda: any(text in log.read_text() for log in logs), f"{text!r} in the log", LATEST)


def read_logs(nodes: Iterable[NetNode]) -> str:
    """What the node daemons said of failovers."""
    text = ""
    for node in nodes:
        log = node.paths.log / "node-daemon.log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        said = [line for line in lines if "silent" in line or "failover" in line]
        text += "\n".join([f"\n{node.short}:", *said])
    return text


def heal(cluster: NetCluster) -> None:
    """Everything whole again, with all node daemons."""
    cluster.heal()
    for node in cluster.nodes.values():
        node.start(constants.NODED)
    master = demand_master(cluster)
    wait_for(
        lambda: all(node.read_master() == master.name for node in cluster.nodes.values()),
        cluster.describe,
        LATEST,
    )
    done = master.gnt("cluster verify")
    assert done.code == 0, done.out


def test_a_dead_master_is_replaced(cluster: NetCluster) -> None:
    old = demand_master(cluster)
    old.kill()
    new = wait_for_another(cluster, old)
    history = new.gnt("cluster history").out
    assert f"automatic master failover from {old.name}" in history
    heal(cluster)
    back = old.start(constants.MASTERD)
    assert back.code == constants.EXIT_NOTMASTER, back
    assert new.name in back.err


@in_full
def test_a_master_that_is_cut_off_lets_go_first(cluster: NetCluster) -> None:
    old = demand_master(cluster)
    others = [node for node in cluster.nodes if node != old.number]
    cluster.cut({(old.number, n) for n in others} | {(n, old.number) for n in others})
    wait_for_end(old)
    assert "has not answered for 10 s" in (old.paths.log / "master-daemon.log").read_text()
    wait_for_another(cluster, old)
    heal(cluster)


@in_full
@pytest.mark.parametrize("way", ["from", "to"])
def test_a_master_that_is_cut_off_one_way_is_replaced(cluster: NetCluster, way: str) -> None:
    old = demand_master(cluster)
    others = [node for node in cluster.nodes if node != old.number]
    cluster.cut((old.number, n) if way == "from" else (n, old.number) for n in others)
    wait_for_another(cluster, old)
    wait_for_end(old)
    heal(cluster)


@in_full
def test_a_frozen_master_is_replaced_and_ends_when_it_goes_on(cluster: NetCluster) -> None:
    old = demand_master(cluster)
    for name in (constants.MASTERD, constants.NODED):
        old.signal(name, signal.SIGSTOP)
    new = wait_for_another(cluster, old)
    for name in (constants.NODED, constants.MASTERD):
        old.signal(name, signal.SIGCONT)
    wait_for_end(old)
    assert new.gnt("cluster add-tags thawed").code == 0
    heal(cluster)


@in_full
def test_a_frozen_master_daemon_is_killed_where_its_node_answers(cluster: NetCluster) -> None:
    """Waiting for its end would take longer than the leases of the nodes."""
    old = demand_master(cluster)
    frozen = old.pid(constants.MASTERD)
    old.signal(constants.MASTERD, signal.SIGSTOP)
    began = time.monotonic()
    new = wait_for_another(cluster, old)
    print(f"replaced after {time.monotonic() - began:.1f} s")
    assert old.pid(constants.MASTERD) != frozen
    assert (
        "did not stop within 5 s and is killed" in (old.paths.log / "node-daemon.log").read_text()
    )
    assert "Could not stop the old master" not in read_logs([new])
    heal(cluster)


@in_full
def test_a_candidate_that_is_cut_off_deposes_nobody(cluster: NetCluster) -> None:
    master = demand_master(cluster)
    lone = next(node for node in cluster.nodes.values() if node is not master)
    term = master.term()
    others = [number for number in cluster.nodes if number != lone.number]
    cluster.cut({(lone.number, n) for n in others} | {(n, lone.number) for n in others})
    wait_for_log([lone], "only 1 of 3 nodes answered")
    cluster.heal()
    assert master.gnt("cluster add-tags undisturbed").code == 0
    assert master.term() == term
    heal(cluster)


@in_full
def test_only_the_link_between_master_and_a_candidate_is_cut(cluster: NetCluster) -> None:
    master = demand_master(cluster)
    lone = next(node for node in cluster.nodes.values() if node is not master)
    term = master.term()
    cluster.cut({(lone.number, master.number), (master.number, lone.number)})
    wait_for_log([lone], "heard from the master")
    cluster.heal()
    assert master.pid(constants.MASTERD) is not None
    assert master.term() == term
    heal(cluster)


@in_full
def test_a_dead_master_with_the_newest_data_comes_back_by_itself(cluster: NetCluster) -> None:
    """The other node that answers needs it for a majority, but does not have its last change."""
    master = demand_master(cluster)
    other, lost = (node for node in cluster.nodes.values() if node is not master)
    for node in (other, lost):
        node.signal(constants.NODED, signal.SIGSTOP)
    assert master.gnt("cluster add-tags not-acknowledged").code != 0
    wait_for_end(master)
    lost.kill()
    other.signal(constants.NODED, signal.SIGKILL)  # it would still read the change
    assert other.start(constants.NODED).code == 0
    assert demand_master(cluster) is master
    assert "not-acknowledged" in master.gnt("cluster list-tags").out
    heal(cluster)


@in_full
def test_a_master_daemon_that_was_stopped_keeps_its_role(cluster: NetCluster) -> None:
    master = demand_master(cluster)
    term = master.term()
    master.signal(constants.MASTERD, signal.SIGTERM)
    wait_for_log(cluster.nodes.values(), "was stopped by an administrator")
    assert find_master(cluster) is None
    assert master.term() == term
    assert master.start(constants.MASTERD).code == 0
    heal(cluster)
