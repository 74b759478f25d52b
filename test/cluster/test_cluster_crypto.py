"""Certificates and secrets are replaced while the cluster works."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from local_cluster import Cluster, tool

from ganeti import constants, errors
from ganeti.base import files
from ganeti.net import certs, pem
from ganeti.net.tls.contexts import Identity
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import NodeRpc

NODES = ("node1", "node2", "node3")


def digests(cluster: Cluster) -> dict[str, str]:
    """Digests of all certificates that nodes prove themselves with."""
    found = {}
    for node in NODES:
        where = cluster.paths(node)
        for path in (where.server_cert, where.client_cert):
            found[f"{node} {path.name}"] = pem.digest_of_file(path)
    return found


def authorities(cluster: Cluster) -> set[bytes]:
    return {cluster.paths(node).ca_cert.read_bytes() for node in NODES}


@contextmanager
def load(cluster: Cluster) -> Iterator[list[str]]:
    """Jobs that call all nodes, one after the other; yields what failed."""
    over = threading.Event()
    failed: list[str] = []

    def work() -> None:
        while not over.is_set():
            ran = cluster.gnt("cluster command", "true")
            if ran.code:
                failed.append(ran.out + ran.err)
            ran = cluster.gnt("debug delay", "-n", "node2", "-n", "node3", "0.01")
            if ran.code:
                failed.append(ran.out + ran.err)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield failed
    finally:
        over.set()
        thread.join()


def call_version(cluster: Cluster, node: str, client: Path, authority: Path) -> int:
    """Call a node daemon with these files."""
    address = cluster.paths().ssconf("node_primary_ips").read_text()
    primary_ip = address.split(f"{node}.example.com ")[1].split()[0]
    rpc = NodeRpc(Identity(client, authority).client_context())
    try:
        return rpc.call_address(primary_ip, f"{node}.example.com", NodeCalls.version)
    finally:
        rpc.stop()


def test_no_job_fails_while_everything_is_renewed(cluster: Cluster, tmp_path: Path) -> None:
    before, old_authority = digests(cluster), authorities(cluster)
    where = cluster.paths()
    for path in (where.client_cert, where.ca_cert):
        files.write_atomic(tmp_path / path.name, path.read_bytes())
    with load(cluster) as failed:
        cluster.ok("cluster renew-crypto --new-node-certificates")
        between = digests(cluster)
        cluster.ok("cluster renew-crypto --new-cluster-certificate")
    after = digests(cluster)
    assert failed == []
    for name in before:
        assert len({before[name], between[name], after[name]}) == 3, name
    [authority] = authorities(cluster)
    assert authority not in old_authority
    assert len(pem.split(authority)) == 1
    cluster.ok("cluster verify")
    with pytest.raises(errors.GanetiError, match=r"node2\.example\.com"):
        call_version(cluster, "node2", tmp_path / "client.pem", tmp_path / "ca.pem")
    assert not where.previous_crypto.exists()


def test_a_node_that_was_down_is_renewed_when_it_is_back(cluster: Cluster) -> None:
    assert tool("kill-node", cluster.directory, "node3").code == 0
    ran = cluster.ok("cluster renew-crypto --new-cluster-certificate")
    assert "node3.example.com does not answer and keeps its old certificates" in ran.out
    cluster.ok("cluster renew-crypto --new-node-certificates")
    assert tool("start-node", cluster.directory, "node3").code == 0
    assert cluster.gnt("cluster verify").code == 1
    ran = cluster.ok("cluster renew-crypto")
    assert "node3.example.com was down during a renewal" in ran.out
    cluster.ok("cluster verify")
    assert len(authorities(cluster)) == 1
    assert not cluster.paths().previous_crypto.exists()


def test_the_node_daemon_of_the_master_must_answer(cluster: Cluster) -> None:
    noded = cluster.pid(constants.NODED)
    assert noded is not None
    os.kill(noded, signal.SIGKILL)
    ran = cluster.gnt("cluster renew-crypto --new-node-certificates")
    assert ran.code == 1
    assert "the node daemon of the master must answer" in ran.err
    assert "node1.example.com does not answer" in ran.out
    assert tool("start-node", cluster.directory, "node1").code == 0
    cluster.ok("cluster renew-crypto")
    cluster.ok("cluster verify")


def test_secrets_are_the_same_on_all_nodes_afterwards(cluster: Cluster) -> None:
    def list_secrets() -> list[tuple[bytes, ...]]:
        result = []
        for node in NODES:
            where = cluster.paths(node)
            listed = (where.domain_secret, where.hmac_key, where.spice_cert, where.spice_ca_cert)
            result.append(tuple(path.read_bytes() if path.exists() else b"" for path in listed))
        return result

    before = list_secrets()
    cluster.ok(
        "cluster renew-crypto --new-cluster-domain-secret --new-confd-hmac-key"
        " --new-spice-certificate"
    )
    after = list_secrets()
    assert len(set(after)) == 1
    assert all(old != new for old, new in zip(before[0], after[0], strict=True))
    authority = cluster.paths().spice_ca_cert.read_bytes()
    assert certs.inspect_pair(cluster.paths("node2").spice_cert, authority).subject_cn


def test_the_remote_api_gets_the_certificate_that_is_given(
    cluster: Cluster, tmp_path: Path
) -> None:
    made = certs.self_signed("api.example.com")
    given = tmp_path / "api.pem"
    certs.write(given, made)
    cluster.ok("cluster renew-crypto", f"--rapi-certificate={given}")
    for node in NODES:  # all of them are candidates
        assert pem.digest_of_file(cluster.paths(node).rapi_cert) == pem.digest(made.cert)
    job = cluster.ok("job list --no-headers -o id").lines[-1]
    shown = cluster.ok("job info", job).out
    assert "PRIVATE KEY" not in shown
    where = cluster.paths()
    for path in (*where.queue.rglob("*"), *where.history.rglob("*"), *where.log.rglob("*")):
        assert path.is_dir() or b"PRIVATE KEY" not in path.read_bytes(), path


def test_a_certificate_without_its_key_changes_nothing(cluster: Cluster, tmp_path: Path) -> None:
    given = tmp_path / "api.pem"
    given.write_bytes(certs.self_signed("api.example.com").cert)
    before = cluster.paths().rapi_cert.read_bytes()
    ran = cluster.gnt("cluster renew-crypto", f"--rapi-certificate={given}")
    assert ran.code == 1
    assert "private key" in ran.err
    assert cluster.paths().rapi_cert.read_bytes() == before


def test_what_ends_soon_is_renewed(cluster: Cluster) -> None:
    where = cluster.paths()
    before = digests(cluster)
    assert "Renewing" not in cluster.ok("cluster renew-crypto --expiring").out
    assert digests(cluster) == before
    authority = certs.read_authority(where.ca_key, where.ca_cert)
    short = certs.issue_client(authority, "node2.example.com", [], days=80)
    certs.write(cluster.paths("node2").client_cert, short)
    ran = cluster.ok("cluster renew-crypto --expiring")
    assert "Certificates end soon on node2.example.com" in ran.out
    after = digests(cluster)
    assert not set(after.values()) & set(before.values())
    cluster.ok("cluster renew-crypto --expiring")
    assert digests(cluster) == after
    cluster.ok("cluster verify")
