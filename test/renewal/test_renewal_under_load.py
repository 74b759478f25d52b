"""Everything is renewed on five nodes, several times, while jobs call all of them; none fails."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from local_cluster import Cluster, copy_cluster

from ganeti.luxi.client import Client
from ganeti.net import pem

NODES = tuple(f"node{number}" for number in range(1, 6))
NAMES = [f"{node}.example.com" for node in NODES]
#: What is replaced in a round.
RENEWALS = (
    "--new-node-certificates",
    "--new-cluster-certificate",
    "--new-rapi-certificate --new-spice-certificate",
    "--new-cluster-domain-secret --new-confd-hmac-key",
) * 3


@pytest.fixture(scope="module")
def five() -> Iterator[Cluster]:
    with copy_cluster(5) as cluster:
        yield cluster


class Load:
    """Jobs one after the other in some threads, until it is told to stop."""

    def __init__(self, cluster: Cluster, threads: int) -> None:
        self._socket = cluster.paths().luxi_socket
        self._over = threading.Event()
        self._lock = threading.Lock()
        self.ended: Counter[str] = Counter()
        self.failed: list[object] = []
        self._threads = [threading.Thread(target=self._work, args=(n,)) for n in range(threads)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _work(self, number: int) -> None:
        name = f"guest{number}.example.com"
        with Client(self._socket) as client:
            while not self._over.is_set():
                for op in self._ops(name, NAMES[number % len(NAMES)]):
                    self._run(client, op)

    @staticmethod
    def _ops(name: str, node: str) -> list[dict[str, object]]:
        create = {
            "OP_ID": "OP_INSTANCE_CREATE",
            "instance_name": name,
            "mode": "create",
            "pnode": node,
            "os_type": "noop",
            "disk_template": "file",
            "disks": [{"size": 4}],
            "nics": [],
        }
        return [
            {"OP_ID": "OP_TEST_DELAY", "duration": 0.01, "on_nodes": NAMES, "on_master": True},
            create,
            {"OP_ID": "OP_INSTANCE_REBOOT", "instance_name": name, "reboot_type": "hard"},
            {"OP_ID": "OP_INSTANCE_REMOVE", "instance_name": name},
        ]

    def _run(self, client: Client, op: dict[str, object]) -> None:
        job = client.submit_job([op])
        status = client.wait_until_ended(job, lambda _entry: None)
        [row] = client.query_jobs([job], ["opresult"])
        with self._lock:
            self.ended[str(op["OP_ID"])] += 1
            if status != "success":
                self.failed.append((op["OP_ID"], row))


def test_no_job_fails_while_everything_is_renewed(
    five: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {node: pem.digest_of_file(five.paths(node).server_cert) for node in NODES}
    took: list[tuple[str, float]] = []
    with Load(five, 5) as load:
        for words in RENEWALS:
            begun = time.monotonic()
            five.ok(f"cluster renew-crypto {words}", timeout=300)
            took.append((words, time.monotonic() - begun))
    after = {node: pem.digest_of_file(five.paths(node).server_cert) for node in NODES}
    with capsys.disabled():
        for words, seconds in took:
            print(f"\n{words}: {seconds:.1f} s", end="")
        print(f"\njobs meanwhile: {dict(load.ended)}, failures: {len(load.failed)}")
    assert load.failed == []
    assert all(load.ended[kind] >= 5 for kind in load.ended), load.ended
    assert not set(before.values()) & set(after.values())
    assert len({five.paths(node).ca_cert.read_bytes() for node in NODES}) == 1
    five.ok("cluster verify")
