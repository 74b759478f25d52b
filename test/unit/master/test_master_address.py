"""The address of the cluster: taken when the master starts, and again until that succeeds."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from one_process import OneProcess

from ganeti import errors
from ganeti.master.address import Address
from ganeti.rpc.calls import NodeCalls


class Node:
    """Fails some times, then takes the address."""

    def __init__(self, *failures: str) -> None:
        self.failures = list(failures)
        self.calls = 0
        self.changed = threading.Event()

    def call_one(self, _node: Any, method: Any, *_args: Any) -> None:
        assert method is NodeCalls.node_activate_master_ip
        self.calls += 1
        self.changed.set()
        if self.failures:
            raise errors.RpcError(self.failures.pop(0))


@pytest.fixture
def cluster(tmp_path: Path) -> Any:
    made = OneProcess(tmp_path / "cluster")
    yield made
    made.close()


def test_a_busy_node_is_asked_until_it_has_the_address(
    cluster: OneProcess, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    rpc: Any = Node("busy", "busy", "busy")
    address = Address(cluster.store, rpc, retry_after=0.001)
    address.start()
    address._thread.join(10.0)
    assert rpc.calls == 4
    assert caplog.text.count("busy") == 1
    assert "is on this node now" in caplog.text
    address.stop()
    assert rpc.calls == 4


def test_the_end_of_the_master_ends_it(cluster: OneProcess) -> None:
    rpc: Any = Node("no such device")
    address = Address(cluster.store, rpc, retry_after=3600.0)
    address.start()
    assert rpc.changed.wait(10.0)
    address.stop()
    assert not address._thread.is_alive()
    assert rpc.calls == 1
