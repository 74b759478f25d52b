"""Two of three master candidates die: what is said, the way out, and how they come back."""

from __future__ import annotations

import pytest
from local_cluster import Cluster, tool
from waiting import wait_for

from ganeti import constants
from ganeti.config.store import read_config

pytestmark = pytest.mark.long

RECOVER = "cluster recover-quorum"
DEAD = ("node2.example.com", "node3.example.com")


def kill(cluster: Cluster, *nodes: str) -> None:
    for node in nodes:
        assert tool("kill-node", cluster.directory, node).code == 0


def revive(cluster: Cluster, *nodes: str) -> None:
    """Start the node daemons again, and nothing else."""
    for node in nodes:
        started = cluster.start_daemon(constants.NODED, node)
        assert started.code == 0, started.err


def masters(cluster: Cluster) -> list[str]:
    short = [name.partition(".")[0] for name in cluster.names]
    return [node for node in short if cluster.pid(constants.MASTERD, node) is not None]


def term(cluster: Cluster, node: str) -> str:
    return cluster.paths(node).epoch_file.read_text()


def roles(cluster: Cluster) -> list[str]:
    return [role for (role,) in cluster.cells("node list -o role")]


def has_copy(cluster: Cluster, node: str) -> bool:
    return cluster.paths(node).config_file.exists()


def test_the_cluster_goes_on_and_takes_the_dead_back(fresh_cluster: Cluster) -> None:
    early = fresh_cluster.gnt(RECOVER, "--yes-do-it", *DEAD)
    assert early.code == 1
    assert "still alive: node2.example.com, node3.example.com" in early.err
    kill(fresh_cluster, "node2", "node3")
    for command in ("cluster add-tags late", "node modify -f --offline=yes node2"):
        stuck = fresh_cluster.gnt(command, timeout=90)
        assert stuck.code == 1
        assert "is on 1 of 3 master candidates, 2 are needed" in stuck.err
        assert "Missing: node2.example.com: " in stuck.err
        assert f"gnt-cluster recover-quorum {' '.join(DEAD)}" in stuck.err
    undrained = fresh_cluster.gnt("cluster queue drain", timeout=90)
    assert undrained.code == 1
    assert "the drain flag is on 1 of 3 master candidates, 2 are needed" in undrained.err
    assert fresh_cluster.ok("cluster queue info").out == "The drain flag is unset\n"
    before = fresh_cluster.config()

    unsure = fresh_cluster.gnt(RECOVER, *DEAD)
    assert unsure.code == constants.EXIT_CONFIRMATION
    assert "not dead but only cut off, they can elect a master" in unsure.err
    few = fresh_cluster.gnt(RECOVER, "--yes-do-it", "node2")
    assert few.code == constants.EXIT_NOTMASTER
    assert "node3.example.com" in few.err
    assert "nothing was changed" in fresh_cluster.ok(RECOVER, "--dry-run", *DEAD).err
    assert fresh_cluster.config() == before
    assert masters(fresh_cluster) == ["node1"]

    fresh_cluster.ok(RECOVER, "--yes-do-it", *DEAD, timeout=120)
    assert masters(fresh_cluster) == ["node1"]
    assert roles(fresh_cluster) == ["M", "O", "O"]
    fresh_cluster.ok("cluster add-tags kept")
    fresh_cluster.ok("cluster verify")

    revive(fresh_cluster, "node2", "node3")
    wait_for(
        lambda: not has_copy(fresh_cluster, "node2") and not has_copy(fresh_cluster, "node3"),
        "the nodes to hear that they are not candidates",
        60,
    )
    rival = fresh_cluster.gnt("cluster master-failover", node="node2", timeout=90)
    assert rival.code != 0
    for node in ("node2", "node3"):
        fresh_cluster.ok("node modify --offline=no", node)
    assert roles(fresh_cluster) == ["M", "C", "C"]
    fresh_cluster.ok("cluster verify")
    wait_for(
        lambda: all(
            has_copy(fresh_cluster, node)
            and read_config(fresh_cluster.paths(node)).cluster.tags == ("kept",)
            for node in ("node2", "node3")
        ),
        "the nodes to have the state",
    )
    kill(fresh_cluster, "node1")
    fresh_cluster.ok("cluster master-failover", node="node3", timeout=90)
    assert fresh_cluster.ok("cluster list-tags", node="node3").lines == ["kept"]


def test_a_rival_of_those_who_were_given_up_stops(fresh_cluster: Cluster) -> None:
    kill(fresh_cluster, "node2", "node3")
    fresh_cluster.ok(RECOVER, "--yes-do-it", *DEAD, timeout=120)
    fresh_cluster.ok("cluster add-tags ours")
    kill(fresh_cluster, "node1")  # from here on the two see nobody else
    revive(fresh_cluster, "node2", "node3")
    fresh_cluster.ok("cluster master-failover", node="node2", timeout=90)
    fresh_cluster.ok("cluster add-tags theirs", node="node2")
    rival = int(term(fresh_cluster, "node2").split()[0])
    revive(fresh_cluster, "node1")
    assert fresh_cluster.start_master().code == 0
    wait_for(lambda: masters(fresh_cluster) == ["node1"], "the rival to stop", 60)
    assert int(term(fresh_cluster, "node2").split()[0]) > rival + 500
    log = (fresh_cluster.paths("node1").log / "master-daemon.log").read_text()
    assert (
        "offline node node2.example.com followed node2.example.com as the master until now" in log
    )
    assert fresh_cluster.ok("cluster list-tags").lines == ["ours"]
    wait_for(lambda: not has_copy(fresh_cluster, "node2"), "the rival's state to be removed", 60)
    fresh_cluster.ok("cluster verify")


def test_what_is_no_case_for_it(fresh_cluster: Cluster) -> None:
    kill(fresh_cluster, "node3")
    enough = fresh_cluster.gnt(RECOVER, "--yes-do-it", "node3")
    assert enough.code == 1
    assert "a majority answers" in enough.err
    elsewhere = fresh_cluster.gnt(RECOVER, "--yes-do-it", "node3", node="node2")
    assert "run it on the master node node1.example.com" in elsewhere.err
    assert "is the master, on which this runs" in fresh_cluster.gnt(RECOVER, "node1").err
    assert fresh_cluster.gnt(RECOVER, "--yes-do-it", "nosuch").code == 1
    assert roles(fresh_cluster) == ["M", "C", "C"]
