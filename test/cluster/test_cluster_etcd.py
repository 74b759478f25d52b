"""An etcd cluster decides about the master: set up, used, lost, and left again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from etcd_server import EtcdServers, find_places
from local_cluster import Cluster, copy_cluster
from needs import needs_programs
from waiting import wait_for

from ganeti import constants
from ganeti.base.clock import Deadline
from ganeti.net.etcd import Etcd
from ganeti.net.etcd_settings import read_settings

pytestmark = [
    pytest.mark.long,
    needs_programs("etcd"),
]

MASTERD = constants.MASTERD
NODES = ("node1", "node2", "node3")
USE_ETCD = "cluster modify --master-vote=etcd"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServers]:
    made = EtcdServers(tmp_path_factory.mktemp("etcd") / "c", find_places(3))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with copy_cluster(3) as made:
        yield made


def find_vote(cluster: Cluster, node: str = "node1") -> str:
    lines = cluster.ok("cluster info", node=node).lines
    return next(line.split(": ")[1] for line in lines if "decides about the master" in line)


def read_key(cluster: Cluster, settings: Path, what: str) -> str:
    key = f"/ganeti/{json.loads(cluster.config()[0])['cluster']['uuid']}/{what}"
    with Etcd(read_settings(settings)) as etcd:
        return etcd.read([key], Deadline(10.0))[key].value


def write_settings(cluster: Cluster, servers: EtcdServers, *nodes: str) -> None:
    for node in nodes:
        servers.write_settings(cluster.paths(node).etcd_settings)


def test_etcd_that_a_candidate_cannot_use_is_refused(
    cluster: Cluster, servers: EtcdServers
) -> None:
    ran = cluster.gnt(USE_ETCD)
    assert ran.code == 1
    assert f"{cluster.paths().etcd_settings} is missing: write into it how etcd" in ran.err
    write_settings(cluster, servers, "node1", "node2")
    ran = cluster.gnt(USE_ETCD)
    assert ran.code == 1
    assert "node3.example.com: " in ran.err
    assert "is missing: write into it how etcd is reached" in ran.err
    assert find_vote(cluster) == "nodes"
    assert read_key(cluster, servers.settings, "master") == "", "the role was given back"


def test_the_master_has_a_lease_in_etcd(cluster: Cluster, servers: EtcdServers) -> None:
    write_settings(cluster, servers, *NODES)
    cluster.ok(USE_ETCD)
    assert find_vote(cluster) == "etcd"
    status = cluster.ok("cluster recovery status").out
    claim = read_key(cluster, servers.settings, "master")
    term, _, name = claim.partition(" ")
    assert name == "node1.example.com"
    assert f"etcd decides about the master: term {term}, lease for" in status
    cluster.ok("cluster verify")


def test_verify_names_what_is_wrong_with_etcd(cluster: Cluster, servers: EtcdServers) -> None:
    settings = cluster.paths("node2").etcd_settings
    member = servers.members[2]
    text = settings.read_text()
    settings.write_text(text.replace(f",{member.url}", ""))
    ran = cluster.gnt("cluster verify")
    settings.write_text(text)
    assert ran.code == 1
    assert "node2.example.com" in ran.out
    assert "only 2 of at least 3 members of etcd are named" in ran.out


def test_another_node_becomes_the_master_and_the_first_does_not_come_back(
    cluster: Cluster, servers: EtcdServers
) -> None:
    before = int(read_key(cluster, servers.settings, "term").split()[0])
    cluster.ok("cluster master-failover", node="node2", timeout=120)
    term, name = read_key(cluster, servers.settings, "master").split()
    assert name == "node2.example.com"
    assert int(term) > before
    refused = cluster.start_daemon(MASTERD, "node1")
    assert refused.code == constants.EXIT_NOTMASTER
    cluster.ok("cluster master-failover", timeout=120)


def test_a_master_without_etcd_ends_and_an_administrator_goes_back_to_the_vote(
    cluster: Cluster, servers: EtcdServers
) -> None:
    servers.stop()
    wait_for(lambda: cluster.pid(MASTERD) is None, "the end of the master", 40)
    log = (cluster.paths().log / "master-daemon.log").read_text()
    assert "the lease of the master's role is not renewed: no member of etcd answers" in log
    assert cluster.start_daemon(MASTERD, "node1", "--no-voting", "--yes-do-it").code == 0
    assert "etcd does not renew the role of the master" in (
        cluster.ok("cluster recovery status").out
    )
    cluster.ok("cluster modify --master-vote=nodes")
    assert find_vote(cluster) == "nodes"
    cluster.kill_master()
    assert cluster.start_master().code == 0
    assert find_vote(cluster) == "nodes"
