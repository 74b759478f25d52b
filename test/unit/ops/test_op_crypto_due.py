"""Which certificates are so near to their end that they are replaced."""

from __future__ import annotations

from pathlib import Path

import pytest
from one_process import OneProcess

from ganeti.net import certs, expiry
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
