"""Two of three master candidates die: what is said, the way out, and how they come back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from local_cluster import Cluster, copied, tool
from waiting import wait_for

from ganeti import constants
from ganeti.config.store import read_config

pytestmark = pytest.mark.long

RECOVER = "cluster recover-quorum"
DEAD = ("node2.example.com", "node3.example.com")


@pytest.fixture
def fresh() -> Iterator[Cluster]:
    with copied(3) as made:
        yield made


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


def test_the_cluster_goes_on_and_takes_the_dead_back(fresh: Cluster) -> None:
    early = fresh.gnt(RECOVER, "--yes-do-it", *DEAD)
    assert early.code == 1
    assert "still alive: node2.example.com, node3.example.com" in early.err
    kill(fresh, "node2", "node3")
    for command in ("cluster add-tags late", "node modify -f --offline=yes node2"):
        stuck = fresh.gnt(command, timeout=90)
        assert stuck.code == 1
        assert "is on 1 of 3 master candidates, 2 are needed" in stuck.err
        assert "Missing: node2.example.com: " in stuck.err
        assert f"gnt-cluster recover-quorum {' '.join(DEAD)}" in stuck.err
    undrained = fresh.gnt("cluster queue drain", timeout=90)
    assert undrained.code == 1
    assert "the drain flag is on 1 of 3 master candidates, 2 are needed" in undrained.err
    assert fresh.ok("cluster queue info").out == "The drain flag is unset\n"
    before = fresh.config()

    unsure = fresh.gnt(RECOVER, *DEAD)
    assert unsure.code == constants.EXIT_CONFIRMATION
    assert "not dead but only cut off, they can elect a master" in unsure.err
    few = fresh.gnt(RECOVER, "--yes-do-it", "node2")
    assert few.code == constants.EXIT_NOTMASTER
    assert "node3.example.com" in few.err
    assert "nothing was changed" in fresh.ok(RECOVER, "--dry-run", *DEAD).err
    assert fresh.config() == before
    assert masters(fresh) == ["node1"]

    fresh.ok(RECOVER, "--yes-do-it", *DEAD, timeout=120)
    assert masters(fresh) == ["node1"]
    assert roles(fresh) == ["M", "O", "O"]
    fresh.ok("cluster add-tags kept")
    fresh.ok("cluster verify")

    revive(fresh, "node2", "node3")
    wait_for(
        lambda: not has_copy(fresh, "node2") and not has_copy(fresh, "node3"),
        "the nodes to hear that they are not candidates",
        60,
    )
    rival = fresh.gnt("cluster master-failover", node="node2", timeout=90)
    assert rival.code != 0
    for node in ("node2", "node3"):
        fresh.ok("node modify --offline=no", node)
    assert roles(fresh) == ["M", "C", "C"]
    fresh.ok("cluster verify")
    wait_for(
        lambda: all(
            has_copy(fresh, node) and read_config(fresh.paths(node)).cluster.tags == ("kept",)
            for node in ("node2", "node3")
        ),
        "the nodes to have the state",
    )
    kill(fresh, "node1")
    fresh.ok("cluster master-failover", node="node3", timeout=90)
    assert fresh.ok("cluster list-tags", node="node3").lines == ["kept"]


def test_a_rival_of_those_who_were_given_up_stops(fresh: Cluster) -> None:
    kill(fresh, "node2", "node3")
    fresh.ok(RECOVER, "--yes-do-it", *DEAD, timeout=120)
    fresh.ok("cluster add-tags ours")
    kill(fresh, "node1")  # from here on the two see nobody else
    revive(fresh, "node2", "node3")
    fresh.ok("cluster master-failover", node="node2", timeout=90)
    fresh.ok("cluster add-tags theirs", node="node2")
    rival = int(term(fresh, "node2").split()[0])
    revive(fresh, "node1")
    assert fresh.start_master().code == 0
    wait_for(lambda: masters(fresh) == ["node1"], "the rival to stop", 60)
    assert int(term(fresh, "node2").split()[0]) > rival + 500
    log = (fresh.paths("node1").log / "master-daemon.log").read_text()
    assert (
        "offline node node2.example.com followed node2.example.com as the master until now" in log
    )
    assert fresh.ok("cluster list-tags").lines == ["ours"]
    wait_for(lambda: not has_copy(fresh, "node2"), "the rival's state to be removed", 60)
    fresh.ok("cluster verify")


def test_what_is_no_case_for_it(fresh: Cluster) -> None:
    kill(fresh, "node3")
    enough = fresh.gnt(RECOVER, "--yes-do-it", "node3")
    assert enough.code == 1
    assert "a majority answers" in enough.err
    elsewhere = fresh.gnt(RECOVER, "--yes-do-it", "node3", node="node2")
    assert "run it on the master node node1.example.com" in elsewhere.err
    assert "is the master, on which this runs" in fresh.gnt(RECOVER, "node1").err
    assert fresh.gnt(RECOVER, "--yes-do-it", "nosuch").code == 1
    assert roles(fresh) == ["M", "C", "C"]
