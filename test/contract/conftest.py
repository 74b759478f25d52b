"""What several of these tests have in common."""

from __future__ import annotations

from collections.abc import Iterator

import etcd_server
import pytest


@pytest.fixture(scope="module")
def etcd_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[etcd_server.EtcdServers]:
    """A running etcd of one member; skips where etcd is not installed."""
    if etcd_server.PROGRAM is None:
        pytest.skip("not installed: etcd")
    with etcd_server.serve(tmp_path_factory.mktemp("etcd") / "c") as found:
        yield found
