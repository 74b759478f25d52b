"""Which certificates are so near to their end that they are replaced."""

from __future__ import annotations

from pathlib import Path

import pytest
from one_process import OneProcess

from ganeti.net import certs, expiry
from ganeti.opcodes.cluster import OpClusterRenewCrypto
from ganeti.ops.cluster.renew_crypto import ClusterRenewCrypto
from ganeti.ops.steps.nodes import crypto

DAY = 86400.0
NODES = ("node1.example.com", "node2.example.com")


@pytest.mark.parametrize(
    ("left", "authority", "nodes"),
    [(expiry.RENEW_DAYS + 1, False, ()), (expiry.RENEW_DAYS - 1, True, NODES), (-1, True, NODES)],
)
def test_due(tmp_path: Path, left: int, authority: bool, nodes: tuple[str, ...]) -> None:
    cluster = OneProcess(tmp_path / "cluster", count=2)
    try:
        cluster.clock.ahead = (certs.DEFAULT_DAYS - left) * DAY
        assert crypto.find_due(cluster._context(None)) == crypto.Due(authority, nodes)
        cluster.silent.add(cluster.node(2).uuid)
        assert crypto.find_due(cluster._context(None)).nodes == nodes[:1]
    finally:
        cluster.close()


def test_certificates_of_services_are_replaced_in_time_if_the_cluster_made_them(
    tmp_path: Path,
) -> None:
    cluster = OneProcess(tmp_path / "cluster", count=1)
    try:
        ctx = cluster._context(None)
        paths, name = ctx.paths, ctx.config.cluster.cluster_name
        rapi, spice = paths.rapi_cert, (paths.spice_cert, paths.spice_ca_cert)
        certs.write(rapi, certs.self_signed(name, []))
        authority = certs.create_ca(name)
        certs.write(spice[0], certs.issue_server(authority, name))
        spice[1].write_bytes(authority.cert)

        def list_replaced() -> set[Path]:
            operation = ClusterRenewCrypto(OpClusterRenewCrypto(expiring=True), ctx)
            return {*operation._rapi(), *operation._spice()}

        assert list_replaced() == set()
        cluster.clock.ahead = (certs.DEFAULT_DAYS - expiry.RENEW_DAYS + 1) * DAY
        assert list_replaced() == {rapi, *spice}
        # One of somebody else stays: nobody here could make it again.
        certs.write(rapi, certs.issue_server(certs.create_ca("Company CA"), name))
        rapi.chmod(0o600)
        assert list_replaced() == {*spice}
    finally:
        cluster.close()
