"""Every store that holds the role of the master keeps these rules: etcd, and the simulator's."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from etcd_server import EtcdServers
from jumping_clock import JumpingClock
from memory_store import MemoryStore
from waiting import wait_for

from ganeti import errors
from ganeti.base.clock import Deadline
from ganeti.config.etcd_role import EtcdRole
from ganeti.net.etcd import Etcd
from ganeti.net.etcd_settings import read_settings
from ganeti.recovery.role import Claim, Record, RoleStore

#: Shortest lease that etcd gives.
SHORT = 2
FIRST, SECOND = Claim(1, "node1.example.com"), Claim(2, "node2.example.com")


def make_deadline() -> Deadline:
    return Deadline(30.0)


@dataclass
class Bench:
    store: RoleStore
    #: let a second pass
    wait: Callable[[], None]

    def take(self, claim: Claim, seconds: int = 60) -> None:
        granted = self.store.claim(
            self.store.read(make_deadline()), claim, seconds, make_deadline()
        )
        assert granted is not None
        assert granted >= seconds

    def wait_for_end(self) -> None:
        """Wait until nobody has the role."""

        def is_over() -> bool:
            self.wait()
            return self.store.read(make_deadline()).holder is None

        wait_for(is_over, "the lease does not end", 30)


@pytest.fixture(params=["memory", "etcd"])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    if request.param == "memory":
        clock = JumpingClock()

        def advance() -> None:
            clock.ahead += 1.0

        yield Bench(MemoryStore(clock.monotonic), advance)
        return
    etcd_servers = request.getfixturevalue("etcd_servers")
    store = EtcdRole(etcd_servers.settings, str(uuid.uuid4()))
    yield Bench(store, lambda: time.sleep(0.2))  # nothing tells that a lease has ended
    store.close()


def test_the_first_claim_wins(bench: Bench) -> None:
    empty = bench.store.read(make_deadline())
    assert empty == Record()
    bench.take(FIRST)
    assert bench.store.claim(empty, SECOND, 60, make_deadline()) is None
    assert bench.store.read(make_deadline()) == Record(last=FIRST, holder=FIRST)


def test_a_lease_that_is_renewed_goes_on_and_ends_by_itself_later(bench: Bench) -> None:
    bench.take(FIRST, SHORT)
    for _ in range(3):
        bench.wait()
        granted = bench.store.renew(FIRST, SHORT, make_deadline())
        assert granted is not None
        assert granted >= SHORT
    bench.wait_for_end()
    assert bench.store.read(make_deadline()) == Record(last=FIRST)


def test_a_lease_that_is_over_is_not_renewed(bench: Bench) -> None:
    bench.take(FIRST, SHORT)
    bench.wait_for_end()
    assert bench.store.renew(FIRST, 60, make_deadline()) is None
    assert bench.store.read(make_deadline()) == Record(last=FIRST)
    bench.take(SECOND)
    assert bench.store.renew(FIRST, 60, make_deadline()) is None
    assert bench.store.read(make_deadline()) == Record(last=SECOND, holder=SECOND)


def test_who_has_the_role_claims_it_again(bench: Bench) -> None:
    bench.take(FIRST)
    again = Claim(2, FIRST.node)
    bench.take(again)
    assert bench.store.read(make_deadline()) == Record(last=again, holder=again)
    assert bench.store.renew(FIRST, 60, make_deadline()) is None


def test_a_role_that_is_given_up_is_free_at_once(bench: Bench) -> None:
    bench.take(FIRST)
    bench.store.release(SECOND, make_deadline())
    assert bench.store.read(make_deadline()).holder == FIRST
    bench.store.release(FIRST, make_deadline())
    bench.store.release(FIRST, make_deadline())
    assert bench.store.read(make_deadline()) == Record(last=FIRST)
    bench.take(SECOND)


def test_a_claim_with_force_ends_that_of_another_node(bench: Bench) -> None:
    bench.take(FIRST)
    seen = bench.store.read(make_deadline())
    assert bench.store.claim(Record(), SECOND, 60, make_deadline(), force=True) is None, (
        "an older view"
    )
    assert bench.store.claim(seen, SECOND, 60, make_deadline(), force=True)
    assert bench.store.read(make_deadline()) == Record(last=SECOND, holder=SECOND)
    assert bench.store.renew(FIRST, 60, make_deadline()) is None


# etcd only ---------------------------------------------------------------------------------------


def test_changed_settings_are_used_at_once_and_bad_ones_not(
    etcd_servers: EtcdServers, tmp_path: Path
) -> None:
    path = tmp_path / "etcd"
    store = EtcdRole(path, str(uuid.uuid4()))
    with pytest.raises(errors.RemoteError, match="is missing"):
        store.read(make_deadline())
    etcd_servers.write_settings(path)
    assert store.read(make_deadline()) == Record()
    good = path.read_text()
    path.write_text("nonsense\n")
    assert store.read(make_deadline()) == Record()
    path.write_text(good.replace("127.0.0.1:", "127.0.0.2:"))
    with pytest.raises(errors.RemoteError, match=r"127\.0\.0\.2"):
        store.read(make_deadline())
    store.close()


def test_keys_that_somebody_else_wrote_are_named(etcd_servers: EtcdServers) -> None:
    cluster = str(uuid.uuid4())
    with Etcd(read_settings(etcd_servers.settings)) as etcd:
        etcd.change({}, {f"/ganeti/{cluster}/term": "rubbish"}, make_deadline())
    store = EtcdRole(etcd_servers.settings, cluster)
    with pytest.raises(errors.RemoteError, match=f"key /ganeti/{cluster}/term of etcd is"):
        store.read(make_deadline())
    store.close()
