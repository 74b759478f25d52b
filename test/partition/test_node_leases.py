"""Nodes that are cut off or frozen: guests end with the lease, and never run twice.

Real daemons in network namespaces, guests of the fake hypervisor on a shared directory.
``make test-partition`` runs them (``AUTO_FAILOVER=all``).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest
from net_cluster import NetCluster, NetNode, needs_networks
from waiting import wait_for

from ganeti import constants

#: Length of the lease, and seconds until a guest must run elsewhere.
LIMIT = 30
LATEST = 150.0
WEB = "web1.example.com"
#: Says off and removes the guests, as power that is cut does; ``lies`` removes nothing.
AGENT = """#!/bin/sh
case "$(cat)" in
  *action=off*) {off};;
  *action=status*) exit 2;;
esac
"""


pytestmark = [
    pytest.mark.long,
    pytest.mark.root,
    needs_networks(),
    pytest.mark.skipif(
        os.environ.get("AUTO_FAILOVER") != "all", reason="takes minutes; make test-partition"
    ),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetCluster]:
    directory = tmp_path_factory.mktemp("leases")
    made = NetCluster(directory / "c", 4)
    shared = directory / "shared"
    shared.mkdir()
    try:
        for node in made.nodes.values():
            there = node.root / "srv/ganeti/shared-file-storage"
            if there.is_dir() and not there.is_symlink():
                there.rmdir()
            there.symlink_to(shared)
        gnt(made, f"cluster modify --auto-fence-after={LIMIT}")
        gnt(
            made,
            f"instance add -n node2 -o noop -t sharedfile --disk 0:size=1M --no-nics"
            f" -B ha=failover {WEB}",
        )
        yield made
    finally:
        made.destroy()


def gnt(cluster: NetCluster, line: str) -> str:
    done = cluster.nodes[1].gnt(line, timeout=120)
    assert done.code == 0, done.err + done.out
    return done.out


def find_guest(cluster: NetCluster) -> list[str]:
    """Nodes on which the guest runs, by what is there and not by what a daemon says."""
    return [
        node.short for node in cluster.nodes.values() if (node.paths.fake_hypervisor / WEB).exists()
    ]


def wait_for_move(cluster: NetCluster, old: NetNode) -> float:
    """Seconds until it runs on another node; at each moment on one at most."""
    began = time.monotonic()

    def has_moved() -> bool:
        found = find_guest(cluster)
        assert len(found) <= 1, f"the guest runs on {found}"
        return bool(found) and found != [old.short]

    wait_for(has_moved, lambda: f"the guest is on {find_guest(cluster)}", LATEST, pause=0.2)
    return time.monotonic() - began


def set_agent(cluster: NetCluster, target: NetNode, *, lies: bool = False) -> None:
    """A fence agent for a node on all others."""
    off = ":" if lies else f"rm -f {target.paths.fake_hypervisor}/*"
    for node in cluster.nodes.values():
        program = node.paths.fence_agent_search_path[0] / "fence_stub"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(AGENT.format(off=off))
        program.chmod(0o755)
        parameters = node.paths.fence_parameters / target.name
        parameters.parent.mkdir(parents=True, exist_ok=True)
        parameters.write_text("ip=192.0.2.1\n")
        parameters.chmod(0o600)
    gnt(cluster, f"node modify --node-parameters fence_agent=fence_stub {target.short}")


def bring_back(cluster: NetCluster, node: NetNode) -> None:
    cluster.heal()
    node.signal(constants.NODED, signal.SIGCONT)
    gnt(cluster, f"node modify --offline no {node.short}")


def cut_off(cluster: NetCluster, node: NetNode) -> None:
    others = [number for number in cluster.nodes if number != node.number]
    ways = {(node.number, n) for n in others}
    cluster.cut(ways | {(b, a) for a, b in ways})


def test_a_node_that_is_cut_off_ends_its_guest_and_silence_starts_nothing(
    cluster: NetCluster,
) -> None:
    assert find_guest(cluster) == ["node2"]
    cut_off(cluster, cluster.nodes[2])
    began = time.monotonic()
    wait_for(lambda: find_guest(cluster) == [], lambda: "the guest still runs", LIMIT, pause=0.2)
    print(f"ended {time.monotonic() - began:.1f} s after the cut")
    time.sleep(LIMIT)  # nothing may happen in this time, and no event tells of that
    assert find_guest(cluster) == []
    cluster.heal()
    wait_for(
        lambda: cluster.nodes[1].gnt(f"instance startup {WEB}").code == 0,
        lambda: "the instance does not start again",
        60,
        pause=1,
    )
    assert find_guest(cluster) == ["node2"]


def test_a_device_that_lies_meets_a_node_without_guests(cluster: NetCluster) -> None:
    node = cluster.nodes[2]
    set_agent(cluster, node, lies=True)
    cut_off(cluster, node)
    print(f"elsewhere {wait_for_move(cluster, node):.1f} s after the cut")
    bring_back(cluster, node)


def test_a_frozen_node_daemon(cluster: NetCluster) -> None:
    """Its guest cannot be ended by it; the device does that, and it starts nothing when thawed."""
    (short,) = find_guest(cluster)
    node = next(n for n in cluster.nodes.values() if n.short == short)
    if node.number == 1:
        pytest.skip("the guest came to the master")
    set_agent(cluster, node)
    node.signal(constants.NODED, signal.SIGSTOP)
    print(f"elsewhere {wait_for_move(cluster, node):.1f} s after the freeze")
    node.signal(constants.NODED, signal.SIGCONT)
    time.sleep(5)  # what the daemon had left to do
    assert len(find_guest(cluster)) == 1
    assert find_guest(cluster) != [short]
