"""Who decides about the master keeps these rules: nodes that vote, and stores that hold the role.

The nodes are in memory and take terms by the rules of the node daemon. The steps are those of the
master daemon when it starts, and of a candidate that takes over: by itself, or because Pacemaker
starts its resource there.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jumping_clock import JumpingClock
from memory_store import MemoryStore
from stand_in_pacemaker import StandInPacemaker
from waiting import wait_for

from ganeti import errors
from ganeti.base.clock import Deadline
from ganeti.base.position import Position
from ganeti.config import vote
from ganeti.config.etcd_role import EtcdRole
from ganeti.config.pacemaker_role import Grant, PacemakerRole
from ganeti.config.role import Role
from ganeti.model.enums import MasterVote
from ganeti.model.node import Node
from ganeti.paths import Paths
from ganeti.recovery.role import RoleStore
from ganeti.recovery.terms import Term
from ganeti.rpc.client import Answer
from ganeti.rpc.replica import MasterView

#: Seconds of silence after which the master is replaced; the shortest lease of etcd.
LIMIT = 2
COUNT = 3


@dataclass
class Host:
    """A node daemon, with its copy of the state."""

    node: Node
    term: Term = field(default_factory=Term)
    heard: float = 0.0
    position: Position = (0, 0)
    answers: bool = True
    #: whether its master daemon ends when it is told to
    ends: bool = True


class Cluster:
    """Three candidates, and what they have been told; also a configuration and its node calls."""

    master_vote: MasterVote | None = None

    def __init__(self, store: RoleStore | None, wait_for_end: Callable[[], None]) -> None:
        self.clock = JumpingClock()
        self.store = store
        self._wait_for_end = wait_for_end
        self.hosts = {f"uuid-{n}": Host(make_node(n)) for n in range(1, COUNT + 1)}
        self.roles = {
            uuid: None if store is None else Role(store, host.node.name, self.clock)
            for uuid, host in self.hosts.items()
        }
        # as a configuration
        self.nodes = {uuid: host.node for uuid, host in self.hosts.items()}
        self.cluster = self
        self.auto_failover_after = LIMIT
        self.master_node = "uuid-1"

    @property
    def master(self) -> Node:
        return self.nodes[self.master_node]

    # what nodes do ---------------------------------------------------------------------------

    def see(self, host: Host) -> MasterView:
        return MasterView(
            master=host.term.master,
            epoch=host.term.number,
            position=host.position,
            config_serial=1,
            silence=self.clock.monotonic() - host.heard,
        )

    def claim_at(
        self, host: Host, epoch: int, master: str, known: int | None, silence: float | None = None
    ) -> MasterView:
        own = host.term.master == host.node.name
        if silence is not None and not own and self.clock.monotonic() - host.heard < silence:
            raise errors.DeposedError("the master was heard")
        term = host.term.claim(epoch, master, known)
        if term is None:
            raise errors.DeposedError("another one has claimed")
        host.term, host.heard = term, self.clock.monotonic()
        return self.see(host)

    # what masters and candidates do ----------------------------------------------------------

    def start(self, number: int, *, alone: bool = False) -> int:
        """Start the master daemon of a node; the number of its term."""
        own, rpc, role = self._describe(number), Calls(self), self.roles[f"uuid-{number}"]
        config: Any = self
        self.master_node = f"uuid-{number}"
        if alone:
            answers = vote.ask(config, rpc)
        else:
            answers = vote.run_vote(config, rpc, own, failover=False, patience=0.0, role=role)
        return self._claim(own, rpc, answers, role=role, alone=alone)

    def take_over(self, number: int) -> int:
        """What a candidate does that does not hear the master; the term that it claims."""
        own, rpc, role = self._describe(number), Calls(self), self.roles[f"uuid-{number}"]
        config: Any = self
        self._check_silence(vote.ask(config, rpc), own, role)
        answers = vote.run_vote(
            config,
            rpc,
            own,
            failover=True,
            patience=0.0,
            retiring=self.master_node,
            role=role,
        )
        self._check_silence(answers, own, role)
        old = vote.find_old_master(config, answers, own.node)
        claimed = vote.leave_out_old_master(
            config,
            own,
            answers,
            old.uuid,
            stopped=self.hosts[old.uuid].answers and self.hosts[old.uuid].ends,
            vote=role is None,
        )
        silence = LIMIT if role is None else None
        term = self._claim(own, rpc, claimed, role=role, silence=silence)
        self.master_node = own.node.uuid
        return term

    def _describe(self, number: int) -> vote.Own:
        host = self.hosts[f"uuid-{number}"]
        return vote.Own(host.node, 1, 0, host.position)

    def _claim(self, own: vote.Own, rpc: Any, answers: Any, **more: Any) -> int:
        config: Any = self
        term = vote.claim(config, rpc, own, answers, **more)
        self.hosts[own.node.uuid].position = (term, 0)
        return term

    def _check_silence(self, answers: Any, own: vote.Own, role: Role | None) -> None:
        config: Any = self
        problem = vote.find_obstacle(config, answers, LIMIT, own.node, role)
        if problem is not None:
            raise errors.NoMasterError(problem)

    def beat(self, number: int) -> None:
        """The master calls all nodes, and renews its lease."""
        for host in self.hosts.values():
            host.heard = self.clock.monotonic()
        role = self.roles[f"uuid-{number}"]
        assert role is None or role.renew(LIMIT, Deadline(30.0))

    def wait_for_silence(self) -> None:
        """Nobody hears the master until its place may be taken."""
        self._wait_for_end()
        self.clock.ahead += LIMIT

    def write(self, number: int, *others: int) -> None:
        """The master changes something; these nodes have a copy."""
        term, sequence = self.hosts[f"uuid-{number}"].position
        for one in (number, *others):
            self.hosts[f"uuid-{one}"].position = (term, sequence + 1)


class ChosenCluster(Cluster):
    """Pacemaker stops the master daemon of a node, or fences the node, and starts another one.

    It is told to start one although the first still runs, too.
    """

    master_vote = MasterVote.PACEMAKER

    def __init__(self, directory: Path) -> None:
        super().__init__(None, lambda: None)
        paths = {uuid: Paths(directory / uuid) for uuid in self.hosts}
        self._grants = {uuid: Grant(paths[uuid], self.clock) for uuid in self.hosts}
        self.roles = {
            uuid: Role(PacemakerRole(paths[uuid], self.clock), host.node.name, self.clock)
            for uuid, host in self.hosts.items()
        }

    def see(self, host: Host) -> MasterView:
        return msgspec.structs.replace(super().see(host), acts=self._acts(host.node.uuid))

    def _acts(self, uuid: str) -> bool:
        found = self._grants[uuid].read()
        return found is not None and found.holder is not None

    def start(self, number: int, *, alone: bool = False) -> int:
        if alone:
            for grant in self._grants.values():  # as it is told to
                grant.revoke()
        elif all(grant.read() is None for grant in self._grants.values()):
            self._grants[f"uuid-{number}"].give()
        return super().start(number, alone=alone)

    def take_over(self, number: int) -> int:
        for name, grant in self._grants.items():
            if not self._acts(name) or not self.hosts[name].answers:
                grant.revoke()
        own = self._grants[f"uuid-{number}"]
        own.give()
        try:
            return super().take_over(number)
        except errors.NoMasterError:
            own.revoke()
            raise

    def _check_silence(self, answers: Any, own: vote.Own, role: Role | None) -> None:
        """Pacemaker has found out itself."""


class Calls:
    """The node calls of one master or candidate."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.epoch = 0
        self.master = ""

    def limit_time(self, _seconds: float) -> Calls:
        return Calls(self._cluster)

    def call_many(self, nodes: Any, _method: Any) -> Any:
        return {node.uuid: self._ask(node.uuid, self._cluster.see) for node in nodes}

    def call_each(self, _method: Any, arguments: Any) -> Any:
        return {
            uuid: self._ask(uuid, lambda host, args=args: self._cluster.claim_at(host, *args))
            for uuid, (_node, args) in arguments.items()
        }

    def call_one(self, _node: Node, _method: Any, *_args: Any) -> None:
        return

    def _ask(self, uuid: str, serve: Callable[[Host], MasterView]) -> Answer[MasterView]:
        host = self._cluster.hosts[uuid]
        if not host.answers:
            return Answer(host.node, error=errors.RpcError("silent"))
        try:
            return Answer(host.node, value=serve(host))
        except errors.DeposedError as err:
            return Answer(host.node, error=err)


def make_node(number: int) -> Node:
    return Node(
        uuid=f"uuid-{number}",
        name=f"node{number}.example.com",
        primary_ip=f"192.0.2.{number}",
        secondary_ip="",
        group="",
        master_candidate=True,
    )


@pytest.fixture(params=["nodes", "memory", "etcd", "pacemaker"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if request.param == "etcd":
        etcd = EtcdRole(request.getfixturevalue("etcd_servers").settings, str(uuid.uuid4()))

        def wait_for_end() -> None:
            wait_for(
                lambda: etcd.read(Deadline(30.0)).holder is None, "the role stays", 30, pause=0.2
            )

        yield Cluster(etcd, wait_for_end)
        etcd.close()
    elif request.param == "pacemaker":
        place: Path = request.getfixturevalue("tmp_path")
        request.getfixturevalue("monkeypatch").setenv("GANETI_ROOTDIR", str(place))
        StandInPacemaker(place / "pacemaker", place)
        yield ChosenCluster(place)
    elif request.param == "memory":
        made = Cluster(None, lambda: None)
        store = MemoryStore(made.clock.monotonic)
        made.store = store
        made.roles = {uuid: Role(store, node.name, made.clock) for uuid, node in made.nodes.items()}
        yield made
    else:
        made = Cluster(None, lambda: None)
        for host in made.hosts.values():
            # as the nodes of a cluster that was just made
            host.term = Term(1, "node1.example.com")
        yield made


def test_the_master_that_starts_again_has_a_higher_term(cluster: Cluster) -> None:
    first = cluster.start(1)
    second = cluster.start(1)
    assert second > first
    assert {host.term for host in cluster.hosts.values()} == {Term(second, "node1.example.com")}


def test_no_other_node_becomes_the_master_by_a_start(cluster: Cluster) -> None:
    cluster.start(1)
    with pytest.raises(errors.NoMasterError, match="node1"):
        cluster.start(2)


def test_a_silent_master_is_replaced_and_does_not_come_back(cluster: Cluster) -> None:
    first = cluster.start(1)
    cluster.hosts["uuid-1"].answers = False
    cluster.wait_for_silence()
    second = cluster.take_over(2)
    assert second > first
    cluster.hosts["uuid-1"].answers = True
    with pytest.raises(errors.NoMasterError, match="node2"):
        cluster.start(1)


def test_nobody_takes_the_place_of_a_master_that_acts(cluster: Cluster) -> None:
    first = cluster.start(1)
    cluster.beat(1)
    with pytest.raises(errors.NoMasterError):
        cluster.take_over(2)
    cluster.beat(1)
    assert {host.term.number for host in cluster.hosts.values()} == {first}


def test_of_two_candidates_the_second_is_late(cluster: Cluster) -> None:
    cluster.start(1)
    cluster.hosts["uuid-1"].answers = False
    cluster.wait_for_silence()
    cluster.take_over(2)
    with pytest.raises(errors.NoMasterError):
        cluster.take_over(3)


def test_who_lacks_what_was_acknowledged_is_not_chosen(cluster: Cluster) -> None:
    cluster.start(1)
    cluster.write(1, 3)
    cluster.hosts["uuid-1"].answers = False
    cluster.wait_for_silence()
    with pytest.raises(errors.NoMasterError, match=r"node3\.example\.com has newer data"):
        cluster.take_over(2)
    cluster.take_over(3)


def test_what_only_the_old_master_has_does_not_stop_a_majority(cluster: Cluster) -> None:
    cluster.start(1)
    cluster.write(1)
    cluster.wait_for_silence()
    second = cluster.take_over(2)
    cluster.beat(2)
    assert cluster.hosts["uuid-1"].term.number < second, "it hears of the term by a call"
    with pytest.raises(errors.NoMasterError, match="node2"):
        cluster.start(1)


def test_nothing_is_claimed_where_the_old_master_has_newer_data_and_is_needed(
    cluster: Cluster,
) -> None:
    first = cluster.start(1)
    cluster.write(1)
    cluster.hosts["uuid-3"].answers = False
    cluster.wait_for_silence()
    with pytest.raises(
        errors.TooFewVotesError, match=r"only 1 of 3 .*; node1\.example\.com has newer"
    ):
        cluster.take_over(2)
    assert cluster.start(1) == first + 1, "the old master goes on"


def test_a_node_whose_master_daemon_does_not_end_makes_no_majority(cluster: Cluster) -> None:
    cluster.start(1)
    cluster.write(1, 2, 3)
    cluster.hosts["uuid-1"].ends = cluster.hosts["uuid-3"].answers = False
    cluster.wait_for_silence()
    with pytest.raises(errors.TooFewVotesError, match=r"only 1 of 3 .*; node1.* may still run"):
        cluster.take_over(2)
    cluster.hosts["uuid-3"].answers = True
    cluster.take_over(2)


def test_who_lacks_what_the_master_before_the_last_has_claims_nothing(cluster: Cluster) -> None:
    """The claim would fail, and keep that node from its own for as long as nodes wait."""
    first = cluster.start(1)
    cluster.write(1)
    cluster.wait_for_silence()
    claimed = Term(first + 1, "node3.example.com")
    cluster.hosts["uuid-2"].term = cluster.hosts["uuid-3"].term = claimed
    with pytest.raises(errors.NoMasterError, match=r"the claim .* node1.* has newer data"):
        cluster.take_over(2)
    assert cluster.hosts["uuid-3"].term == claimed, "nobody has heard of another claim"
    assert cluster.hosts["uuid-1"].term.number == first
    assert cluster.take_over(1) > first


def test_a_minority_chooses_nobody(cluster: Cluster) -> None:
    cluster.start(1)
    cluster.hosts["uuid-1"].answers = cluster.hosts["uuid-3"].answers = False
    cluster.wait_for_silence()
    with pytest.raises(errors.TooFewVotesError, match="only 1 of 3"):
        cluster.take_over(2)
    cluster.hosts["uuid-3"].answers = True
    cluster.take_over(2)


def test_the_word_of_the_administrator_is_enough(cluster: Cluster) -> None:
    first = cluster.start(1)
    cluster.hosts["uuid-1"].answers = cluster.hosts["uuid-3"].answers = False
    second = cluster.start(2, alone=True)
    assert second > first
    role = cluster.roles["uuid-1"]
    assert role is None or not role.renew(LIMIT, Deadline(30.0)), "the first one hears of it"


# a store only ------------------------------------------------------------------------------------


class Unreachable(MemoryStore):
    """A store that answers when it is told to."""

    answers = False

    def read(self, end: Deadline | None = None) -> Any:
        if not self.answers:
            raise errors.RemoteError("no member answers")
        return super().read(end)


def test_without_the_store_only_an_administrator_makes_a_master() -> None:
    cluster = Cluster(None, lambda: None)
    store = Unreachable(cluster.clock.monotonic)
    cluster.roles = {
        uuid: Role(store, node.name, cluster.clock) for uuid, node in cluster.nodes.items()
    }
    with pytest.raises(errors.TooFewVotesError, match="no member answers"):
        cluster.start(1)
    assert cluster.start(1, alone=True) == 1


def test_a_store_that_knows_nothing_lets_nobody_take_over_by_itself() -> None:
    cluster = Cluster(None, lambda: None)
    store = MemoryStore(cluster.clock.monotonic)
    cluster.roles = {
        uuid: Role(store, node.name, cluster.clock) for uuid, node in cluster.nodes.items()
    }
    with pytest.raises(errors.NoMasterError, match="the store knows nothing of this cluster"):
        cluster.take_over(2)
    assert cluster.start(1) == 1


def test_an_administrators_failover_waits_for_the_end_of_a_lease() -> None:
    cluster = Cluster(None, lambda: None)
    store = MemoryStore(cluster.clock.monotonic)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        cluster.clock.ahead += seconds

    first, second = (Role(store, f"node{n}.example.com", cluster.clock, wait) for n in (1, 2))
    first.take(1, 15)
    with pytest.raises(errors.NoMasterError, match=r"says that node1\.example\.com is the master"):
        second.take(1, 15)
    begin = time.monotonic()
    assert second.take(1, 15, patience=20.0) == 2
    assert 14 <= sum(waits) <= 16
    assert time.monotonic() - begin < 10


# Pacemaker only ----------------------------------------------------------------------------------


def test_a_node_that_pacemaker_has_not_chosen_becomes_no_master(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    pacemaker = StandInPacemaker(tmp_path / "pacemaker", tmp_path)
    cluster = ChosenCluster(tmp_path)
    cluster.start(1)
    cluster.hosts["uuid-1"].answers = False
    cluster.wait_for_silence()
    with pytest.raises(errors.NoMasterError, match="does not run ganeti-master-role on this node"):
        cluster.start(2)
    pacemaker.set_quorum(False)
    with pytest.raises(errors.TooFewVotesError, match="without quorum"):
        cluster.take_over(2)
    pacemaker.set_quorum(True)
    assert cluster.take_over(2) == 2
