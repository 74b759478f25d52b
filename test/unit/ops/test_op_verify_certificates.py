"""What gnt-cluster verify says of certificates, with the codes that scripts know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from one_process import OneProcess

from ganeti.net import certs
from ganeti.opcodes.cluster import OpClusterVerifyConfig, OpClusterVerifyGroup

DAY = 86400


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[OneProcess]:
    made = OneProcess(tmp_path / "c")
    yield made
    made.close()


def findings(cluster: OneProcess) -> list[str]:
    before = len(cluster.log)
    cluster.run(OpClusterVerifyConfig(error_codes=True))
    cluster.run(OpClusterVerifyGroup(group_name="default", error_codes=True))
    return [line.strip() for line in cluster.log[before:] if "CERT:" in line]


def test_nothing_is_said_of_good_ones(cluster: OneProcess) -> None:
    assert findings(cluster) == []


def test_swapped_certificates_of_a_node(cluster: OneProcess) -> None:
    here, there = cluster.paths["node2"], cluster.paths["node3"]
    for name in ("server.pem", "client.pem"):
        (here.data / name).unlink()
        (here.data / name).write_bytes((there.data / name).read_bytes())
    server, client = findings(cluster)
    where = "cluster:c.example.com:node node2.example.com:"
    assert server.startswith(f"- ERROR:ECLUSTERCERT:{where} ")
    assert client.startswith(f"- ERROR:ECLUSTERCLIENTCERT:{where} ")
    for line in (server, client):
        assert "is that of node3.example.com: gnt-node add --readd node2.example.com" in line


@pytest.mark.parametrize(
    ("left", "line"), [(20, "WARNING:ECLUSTERCERT:cluster:"), (3, "ERROR:ECLUSTERCERT:cluster:")]
)
def test_the_authority_ends_soon(cluster: OneProcess, left: int, line: str) -> None:
    cluster.clock.ahead = (certs.DEFAULT_DAYS - left) * DAY
    [found] = findings(cluster)
    assert line in found
    assert "gnt-cluster renew-crypto --new-cluster-certificate renews it" in found


@pytest.mark.parametrize("name", ["ca.pem", "ca.key"])
def test_an_authority_that_is_missing_at_the_master(cluster: OneProcess, name: str) -> None:
    where = cluster.paths["node1"]
    (where.data / name).unlink()
    found = findings(cluster)
    assert f"ERROR:ECLUSTERCERT:cluster:c.example.com:{where.data / name}" in found[0]
    assert "No such file" in found[0]
