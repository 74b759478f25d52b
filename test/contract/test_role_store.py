"""Every store that holds the role of the master keeps these rules: etcd, the simulator's, and the
files of nodes whose master Pacemaker chooses."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from etcd_server import EtcdServers
from jumping_clock import JumpingClock
from memory_store import MemoryStore
from stand_in_pacemaker import StandInPacemaker
from waiting import wait_for

from ganeti import errors
from ganeti.base.clock import Deadline
from ganeti.config.etcd_role import EtcdRole
from ganeti.config.pacemaker_role import Grant, PacemakerRole
from ganeti.net.etcd import Etcd
from ganeti.net.etcd_settings import read_settings
from ganeti.paths import Paths
from ganeti.recovery.role import (
    Claim,
    Record,
    RoleStore,
    find_holder,
    find_obstacle,
    find_successor,
)

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
    #: a node sees the claims of others
    shared: bool = True

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


class Pacemaker:
    """What the nodes have of the role, as one store: Pacemaker lets one at a time have it.

    Pacemaker gives it to another node when the lease has ended or was given up: then the agent has
    stopped the master daemon there, or the node was fenced.
    """

    name = "Pacemaker"

    def __init__(self, directory: Path, clock: JumpingClock) -> None:
        self._clock = clock
        self._paths = {claim.node: Paths(directory / claim.node) for claim in (FIRST, SECOND)}
        self.stores = {node: PacemakerRole(paths, clock) for node, paths in self._paths.items()}
        self._at = FIRST.node
        self.find_grant(self._at).give()

    def find_grant(self, node: str) -> Grant:
        return Grant(self._paths[node], self._clock)

    def read(self, end: Deadline) -> Record:
        return self.stores[self._at].read(end)

    def claim(
        self, seen: Record, claim: Claim, seconds: int, end: Deadline, *, force: bool = False
    ) -> int | None:
        found = self.find_grant(self._at).read()
        if found is None or found.holder is None:
            self.find_grant(self._at).revoke()
            self._at = claim.node
            self.find_grant(claim.node).give()
            seen = self.read(end)
        return self.stores[claim.node].claim(seen, claim, seconds, end, force=force)

    def renew(self, claim: Claim, seconds: int, end: Deadline) -> int | None:
        return self.stores[claim.node].renew(claim, seconds, end)

    def release(self, claim: Claim, end: Deadline) -> None:
        self.stores[claim.node].release(claim, end)

    def close(self) -> None:
        return


@pytest.fixture
def pacemaker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandInPacemaker:
    """The programs of Pacemaker; it has quorum."""
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    return StandInPacemaker(tmp_path / "pacemaker", tmp_path)


@pytest.fixture(params=["memory", "etcd", "pacemaker"])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    if request.param in ("memory", "pacemaker"):
        clock = JumpingClock()

        def advance() -> None:
            clock.ahead += 1.0

        if request.param == "memory":
            yield Bench(MemoryStore(clock.monotonic), advance)
        else:
            request.getfixturevalue("pacemaker")
            store = Pacemaker(request.getfixturevalue("tmp_path"), clock)
            yield Bench(store, advance, shared=False)
        return
    etcd_servers = request.getfixturevalue("etcd_servers")
    etcd = EtcdRole(etcd_servers.settings, str(uuid.uuid4()))
    yield Bench(etcd, lambda: time.sleep(0.2))  # nothing tells that a lease has ended
    etcd.close()


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
    if not bench.shared:
        pytest.skip("who claims with force stops the other one first")
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


# Pacemaker only ----------------------------------------------------------------------------------


@dataclass
class Node:
    """One node of Pacemaker."""

    paths: Paths
    store: PacemakerRole

    @property
    def grant(self) -> Grant:
        return Grant(self.paths)

    def take(self, claim: Claim) -> None:
        assert self.store.claim(self.store.read(make_deadline()), claim, 60, make_deadline())


@pytest.fixture
def node(pacemaker: StandInPacemaker, tmp_path: Path) -> Node:
    paths = Paths(tmp_path)
    return Node(paths, PacemakerRole(paths))


def test_a_node_that_pacemaker_has_not_chosen_claims_nothing(node: Node) -> None:
    record = node.store.read(make_deadline())
    for find in (find_holder, find_successor, find_obstacle):
        why = find("Pacemaker", record, FIRST.node)
        assert why is not None
        assert "does not run ganeti-master-role on this node" in why
    assert node.store.claim(record, FIRST, 60, make_deadline()) is None
    assert not node.paths.master_grant.exists()


def test_a_master_ends_when_pacemaker_stops_the_resource(node: Node) -> None:
    node.grant.give()
    node.take(FIRST)
    assert node.grant.revoke(), "the claim was in force"
    assert node.store.renew(FIRST, 60, make_deadline()) is None
    node.store.release(FIRST, make_deadline())
    assert not node.paths.master_grant.exists()
    assert not node.grant.revoke()


def test_of_two_claims_on_a_node_from_the_same_view_the_second_is_late(node: Node) -> None:
    node.grant.give()
    seen = node.store.read(make_deadline())
    node.take(FIRST)
    second = Claim(1, FIRST.node)
    for force in (False, True):
        assert node.store.claim(seen, second, 60, make_deadline(), force=force) is None
    other = Record(last=FIRST)
    assert node.store.claim(other, second, 60, make_deadline()) is None
    assert node.store.claim(other, second, 60, make_deadline(), force=True)


def test_without_quorum_nothing_is_claimed_or_renewed(
    node: Node, pacemaker: StandInPacemaker
) -> None:
    node.grant.give()
    node.take(FIRST)
    for state, text in ((False, "without quorum"), (None, "does not answer: .* refused")):
        pacemaker.set_quorum(state)
        with pytest.raises(errors.RemoteError, match=text):
            node.store.read(make_deadline())
        with pytest.raises(errors.RemoteError, match=text):
            node.store.claim(Record(FIRST, FIRST), FIRST, 60, make_deadline())
        with pytest.raises(errors.RemoteError, match=text):
            node.store.renew(FIRST, 60, make_deadline())
    pacemaker.set_quorum(True)
    assert node.store.renew(FIRST, 60, make_deadline())


def test_an_administrator_needs_neither_pacemaker_nor_quorum(
    node: Node, pacemaker: StandInPacemaker
) -> None:
    pacemaker.set_quorum(None)
    assert node.store.claim(Record(), FIRST, 60, make_deadline(), force=True)
    assert node.grant.read() == Record(last=FIRST, holder=FIRST)


def test_only_root_can_read_the_file_and_other_users_can_not_make_it(node: Node) -> None:
    node.grant.give()
    path = node.paths.master_grant
    assert path.stat().st_mode & 0o777 == 0o600
    node.grant.revoke()
    path.symlink_to("/dev/null")
    assert node.grant.read() is None
    assert node.store.claim(Record(), FIRST, 60, make_deadline()) is None
    node.grant.give()
    assert node.grant.read() == Record()
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
        assert node.grant.read() is None
        node.grant.give()
        assert path.stat().st_uid == 0


def test_a_damaged_file_is_named(node: Node) -> None:
    for text in ("rubbish", "7 node1.example.com", "7 node1.example.com soon", "7 a 1.0 2.0"):
        node.paths.run.mkdir(parents=True, exist_ok=True)
        node.paths.master_grant.write_text(text)
        with pytest.raises(errors.RemoteError, match="master-grant is damaged"):
            node.store.read(make_deadline())
    assert node.grant.revoke()
    assert node.grant.read() is None
