"""What gnt-cluster verify says of certificates, with the codes that scripts know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from one_process import OneProcess
from op_samples import Findings, config, node

from ganeti.net import certs
from ganeti.opcodes.cluster import OpClusterVerifyConfig, OpClusterVerifyGroup
from ganeti.ops.verification import certificates
from ganeti.paths import Paths

DAY = 86400


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


def _renewal(root: Path, **cluster: Any) -> list[str]:
    found = Findings()
    certificates.renewal(found.report, config(**cluster), Paths(root))
    return found.lines


def _write_authorities(root: Path, count: int) -> None:
    path = Paths(root).ca_cert
    path.parent.mkdir(parents=True)
    made = [certs.create_ca(f"c{number}").cert for number in range(count)]
    path.write_bytes(b"".join(made))


def test_a_renewal_that_ended(tmp_path: Path) -> None:
    _write_authorities(tmp_path, 1)
    assert _renewal(tmp_path, candidate_certs={"node-1": "AA"}) == []


INTERRUPTED = "interrupted, so old ones are still accepted: run gnt-cluster renew-crypto"


def test_a_renewal_that_was_interrupted_with_two_authorities(tmp_path: Path) -> None:
    _write_authorities(tmp_path, 2)
    [line] = _renewal(tmp_path)
    assert line.startswith("WARNING:ECLUSTERCERT:cluster:cluster.example.com:")
    assert INTERRUPTED in line


def test_a_renewal_that_was_interrupted_with_two_certificates_of_a_node(tmp_path: Path) -> None:
    _write_authorities(tmp_path, 1)
    [line] = _renewal(tmp_path, candidate_certs={"node-1": "AA", "node-1-OLD": "BB"})
    assert INTERRUPTED in line


def test_a_renewal_that_did_not_reach_a_node(tmp_path: Path) -> None:
    _write_authorities(tmp_path, 1)
    Paths(tmp_path).previous_crypto.mkdir()
    [line] = _renewal(tmp_path)
    assert "a node was down during a renewal of certificates" in line
    assert line.endswith("run gnt-cluster renew-crypto")


def test_a_node_that_cannot_judge_its_certificates() -> None:
    found = Findings()
    certificates.node(found.report, "c", node(2), {"certificates": "no such check"})
    assert found.lines == ["ERROR:ECLUSTERCERT:cluster:c:node node2.example.com: no such check"]
    certificates.node(found.report, "c", node(2), {})
    assert len(found.lines) == 1


def test_levels_and_codes_of_what_a_node_found() -> None:
    found = Findings()
    problems = [["client.pem", "warning", "ends"], ["server.pem", "error", "is gone"]]
    certificates.node(found.report, "c", node(2), {"certificates": problems})
    assert found.lines == [
        "WARNING:ECLUSTERCLIENTCERT:cluster:c:node node2.example.com: ends",
        "ERROR:ECLUSTERCERT:cluster:c:node node2.example.com: is gone",
    ]
