"""Random schedules of faults on real daemons, with three real members of etcd that decide.

``make check-etcd`` plays 50 of them. ``ETCD_SCHEDULES`` is their number (default: none),
``ETCD_SEED`` the first seed, ``ETCD_CLUSTERS`` how many clusters run side by side, and
``ETCD_LOGS`` a directory for the logs of a failure.

Seeds 1 and 2 found that a candidate claimed the role although the node of the old master had newer
data, so that no node became the master; seed 7 that a node which had claimed, and whose master
daemon did not start then, never tried again; seed 11 that a master which a candidate had stopped
counted as stopped by an administrator, so that nobody took over when the claim failed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from etcd_chaos import MEMBERS, EtcdSchedule
from etcd_server import EtcdServers, Place
from needs import needs_programs
from net_cluster import NETWORK, NetCluster, needs_networks
from schedule_runner import keep_logs, play_all
from waiting import wait_for

SCHEDULES = int(os.environ.get("ETCD_SCHEDULES", "0"))
FIRST = int(os.environ.get("ETCD_SEED", "1"))
CLUSTERS = int(os.environ.get("ETCD_CLUSTERS", "1"))
LIMIT = 15
LOGS = ("nodes/*/var/log/ganeti/*.log", "etcd/*/log")
#: A program that ends with success when all members have a leader.
HEALTHY = (
    "import sys; from pathlib import Path; from ganeti.net.etcd import Etcd;"
    " from ganeti.net.etcd_settings import read_settings;"
    "sys.exit(not all(health.has_leader for health in"
    " Etcd(read_settings(Path(sys.argv[1]))).examine(1.0)))"
)

pytestmark = [
    pytest.mark.long,
    pytest.mark.root,
    pytest.mark.skipif(not SCHEDULES, reason="make check-etcd runs it"),
    needs_programs("etcd"),
    needs_networks(),
]


def make(directory: Path) -> tuple[NetCluster, EtcdServers]:
    """Three nodes and three members of etcd, which decides about the master."""
    cluster = NetCluster(directory / "nodes", 3, others=len(MEMBERS))
    places = [Place(f"{NETWORK}.{n}", 2379, 2380, cluster.spaces[n].enter) for n in MEMBERS]
    servers = EtcdServers(directory / "etcd", places)
    try:
        first = cluster.nodes[1]
        servers.start(wait=False)
        words = [sys.executable, "-c", HEALTHY, str(servers.settings)]
        wait_for(lambda: first.run(words).code == 0, "etcd has no leader", 60)
        for node in cluster.nodes.values():
            servers.write_settings(node.paths.etcd_settings)
            (node.root / "srv/ganeti/shared-file-storage").mkdir(exist_ok=True)
        done = first.gnt(f"cluster modify --auto-failover-after={LIMIT} --master-vote=etcd")
        assert done.code == 0, done.err
        verified = first.gnt("cluster verify")
        assert verified.code == 0, verified.out
    except BaseException:
        servers.stop()
        cluster.destroy()
        raise
    return cluster, servers


def play(directory: Path, seed: int) -> str:
    """Play one schedule; its last lines."""
    cluster, servers = make(directory)
    try:
        schedule = EtcdSchedule(cluster, servers, seed)
        schedule.run()
        return "; ".join(schedule.story[-2:])
    except BaseException:
        keep_logs(directory, LOGS, os.environ.get("ETCD_LOGS"), seed)
        raise
    finally:
        servers.stop()
        cluster.destroy()


@pytest.mark.timeout(6 * 3600)
def test_random_schedules(tmp_path: Path) -> None:
    seeds = range(FIRST, FIRST + SCHEDULES)
    failures = play_all(tmp_path, play, seeds, min(CLUSTERS, SCHEDULES))
    assert not failures, "\n\n".join(failures)
