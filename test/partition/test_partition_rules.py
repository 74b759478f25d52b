"""Rules of terms, votes and copies that a partition would break only once in a while."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

from ganeti import constants, errors
from ganeti.base import files, journal, position
from ganeti.config import vote
from ganeti.master.channel import Channel, Snapshot, State
from ganeti.model.node import Node
from ganeti.node.context import NodeContext
from ganeti.node.replica import Replica
from ganeti.node.standby import Standby
from ganeti.paths import Paths
from ganeti.rpc.client import Answer
from ganeti.rpc.replica import MasterView, ReplicaUpdate
from ganeti.rpc.wire import encode_content


def line(serial: int, what: str) -> str:
    return journal.encode({"serial": serial, "name": what}).decode()


def checkpoint(serial: int) -> str:
    return f'{{"serial_no": {serial}}}'


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    paths = Paths(tmp_path)
    for directory in (paths.data, paths.queue, paths.run):
        directory.mkdir(parents=True)
    paths.config_file.write_text(checkpoint(10))
    return paths


@pytest.fixture
def context(paths: Paths) -> NodeContext:
    return NodeContext(paths, "node2.example.com")


@pytest.fixture
def replica(context: NodeContext) -> Replica:
    return Replica(context, Standby(context))


# copies ------------------------------------------------------------------------------------


HOLD = (
    "import signal, sys\n"
    "from pathlib import Path\n"
    "from ganeti.base.daemon import PidFile\n"
    "PidFile(Path(sys.argv[1])).acquire()\n"
    "print('held', flush=True)\n"
    "signal.pause()\n"
)


@pytest.fixture
def masterd(paths: Paths) -> Iterator[subprocess.Popen[str]]:
    """Something that holds the pid file of the master daemon, as a daemon would."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(paths.pid_file(constants.MASTERD))],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def test_a_deposed_master_is_ended_before_its_files_are_written(
    paths: Paths, replica: Replica, masterd: subprocess.Popen[str]
) -> None:
    masterd.send_signal(signal.SIGSTOP)  # it cannot notice anything
    reaper = threading.Thread(target=masterd.wait)
    reaper.start()
    update = ReplicaUpdate(epoch=2, base=20, checkpoint=encode_content(checkpoint(20)))
    assert replica.replica_update(update)
    reaper.join(10)
    assert masterd.returncode == -signal.SIGKILL
    assert replica.master_view().config_serial == 20
    assert paths.config_file.read_text() == checkpoint(20)


def test_no_update_while_a_master_daemon_has_the_queue(paths: Paths, replica: Replica) -> None:
    with files.FileLock(paths.queue / "lock").hold(), pytest.raises(errors.LockError):
        replica.replica_update(
            ReplicaUpdate(epoch=2, base=20, checkpoint=encode_content(checkpoint(20)))
        )
    assert paths.config_file.read_text() == checkpoint(10)


def test_an_update_of_an_old_term_touches_nothing(paths: Paths, replica: Replica) -> None:
    replica.master_claim(3, "node3.example.com")
    with pytest.raises(errors.DeposedError, match="node3"):
        replica.replica_update(
            ReplicaUpdate(epoch=2, base=10, serial=11, records=[line(11, "late")])
        )
    assert not paths.journal_file.exists()
    assert replica.master_view().config_serial == 10


def test_one_term_has_one_master(replica: Replica) -> None:
    replica.master_claim(3, "node3.example.com")
    replica.master_claim(3, "node3.example.com")
    with pytest.raises(errors.DeposedError):
        replica.master_claim(3, "node4.example.com")
    with pytest.raises(errors.DeposedError):
        replica.master_claim(2, "node4.example.com")
    assert replica.master_view().master == "node3.example.com"


def test_a_copy_knows_how_new_it_is(replica: Replica) -> None:
    assert replica.master_view().position == (0, 0)
    replica.master_claim(4, "node3.example.com")
    replica.replica_update(
        ReplicaUpdate(epoch=4, base=20, checkpoint=encode_content(checkpoint(20)))
    )
    assert replica.master_view().position == (0, 0)  # job files may be missing still
    replica.replica_update(ReplicaUpdate(epoch=4, sequence=7))
    assert replica.master_view().position == (4, 7)
    replica.replica_update(ReplicaUpdate(epoch=4, sequence=3))
    assert replica.master_view().position == (4, 7)


def test_what_a_new_master_has_is_newer_than_all_before(
    replica: Replica, masterd: subprocess.Popen[str]
) -> None:
    replica.master_claim(5, "node2.example.com")
    assert replica.master_view().position == (0, 0)  # it may still lose
    replica.replica_update(ReplicaUpdate(epoch=5))
    assert replica.master_view().position == (5, 0)  # the daemon counts on from here
    assert masterd.poll() is None


def test_after_a_boot_the_number_of_a_master_counts_as_too_low(
    paths: Paths, replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica.master_claim(5, "node2.example.com")
    replica.replica_update(ReplicaUpdate(epoch=5))
    assert not replica.master_view().may_be_newer
    assert position.read(paths).made_here
    monkeypatch.setattr("ganeti.base.boot.read_id", lambda: "another boot")
    assert replica.master_view().may_be_newer
    # It follows another master later, whose number is flushed.
    replica.master_claim(6, "node3.example.com")
    replica.replica_update(ReplicaUpdate(epoch=6, sequence=2))
    assert replica.master_view().position == (6, 2)
    assert position.read(paths) == position.Known((6, 2))


def test_a_newer_copy_of_another_candidate_replaces_an_older_one(
    paths: Paths, replica: Replica, tmp_path: Path
) -> None:
    older = {"job-1": "{}", "job-2": "{}", "serial": "2\n"}
    first = ReplicaUpdate(
        epoch=4, sequence=5, base=10, checkpoint=encode_content(checkpoint(10)), files=older
    )
    where = Paths(tmp_path / "witness")
    for directory in (where.data, where.queue, where.run):
        directory.mkdir(parents=True)
    context = NodeContext(where, "node3.example.com")
    witness = Replica(context, Standby(context))
    with pytest.raises(errors.GenericError, match="no copy"):
        witness.replica_read()
    for each in (replica, witness):
        each.replica_update(first)
    news = {"job-2": '{"ops": []}', "job-3": "{}", "serial": "3\n", f"keys/{'a' * 64}": "1"}
    witness.replica_update(
        ReplicaUpdate(
            epoch=4,
            sequence=9,
            base=10,
            serial=11,
            records=[line(11, "new")],
            files=news,
            remove=["job-1"],
            drained=True,
        )
    )
    copy = witness.replica_read()
    replica.replica_adopt(copy)
    assert replica.master_view().position == (4, 9)
    assert replica.master_view().config_serial == 11
    assert replica.master_view().last_job == 3
    queue = paths.queue
    assert {path.name for path in queue.glob("job-*")} == {"job-2", "job-3"}
    assert (queue / "job-2").read_text() == news["job-2"]
    assert (queue / "keys" / ("a" * 64)).read_text() == "1"
    assert (queue / "drain").exists()
    with pytest.raises(errors.GenericError, match="is not older"):
        replica.replica_adopt(copy)
    with pytest.raises(errors.GenericError, match="is not older"):
        replica.replica_adopt(first)


def test_no_copy_is_replaced_below_a_master_daemon(
    replica: Replica, masterd: subprocess.Popen[str]
) -> None:
    with pytest.raises(errors.GenericError, match="the master daemon of this node runs"):
        replica.replica_adopt(ReplicaUpdate(epoch=4, sequence=5))
    assert masterd.poll() is None


# channels ----------------------------------------------------------------------------------


class Wire:
    """The call to one node daemon, and whether it gets through."""

    def __init__(self, replica: Replica) -> None:
        self.epoch = 1
        self.whole = threading.Event()
        self.whole.set()
        self._replica = replica

    def call_one(self, node: Node, method: Any, *args: Any) -> Any:
        if not self.whole.is_set():
            raise errors.RpcError(f"node {node.name}: cut off")
        return getattr(self._replica, method.__name__)(*args)


def node(number: int, **more: Any) -> Node:
    address = f"192.0.2.{number}"
    return Node(
        uuid=f"uuid-{number}",
        name=f"node{number}.example.com",
        primary_ip=address,
        secondary_ip=address,
        group="g",
        master_candidate=True,
        **more,
    )


@pytest.fixture
def wire(replica: Replica) -> Wire:
    return Wire(replica)


@pytest.fixture
def channel(wire: Wire) -> Iterator[Channel]:
    state = Snapshot(serial=10, config=checkpoint(10), files={}, drained=False)
    source = State(lambda _files: state, lambda _names: {"job-5": b'{"ops": [{"n": 2}]}'})
    made = Channel(node(2), wire, source, 1)  # type: ignore[arg-type]
    assert made.flushed(5)
    try:
        yield made
    finally:
        made.stop()


def test_what_was_taken_back_is_not_sent_later(
    channel: Channel, wire: Wire, replica: Replica
) -> None:
    """A change that failed must not come true on a copy when its node can be reached again."""
    wire.whole.clear()
    channel.put(lambda pending: pending.add_lines(10, [line(11, "refused")]), 2)
    wait_for(lambda: channel.failure, "the channel to fail")
    channel.take_back()
    wire.whole.set()
    wait_for(lambda: not channel.failure and channel.flushed(0), "the channel is well again")
    assert replica.master_view().config_serial == 10
    channel.put(lambda pending: pending.add_lines(10, [line(11, "made")]), 3)
    assert channel.flushed(5)
    assert replica.master_view().config_serial == 11


def test_job_files_come_in_parts_and_as_a_whole_after_a_failure(
    channel: Channel, wire: Wire, replica: Replica, paths: Paths
) -> None:
    """What a candidate missed is not kept for it; archived jobs come from the archive."""

    def put(contents: dict[str, Any], sequence: int) -> None:
        channel.put(lambda pending: pending.files.add(contents), sequence)

    put({"job-4": b'{"ops": [{"n": 0}, {"n": 0}]}', "job-5": b'{"ops": [{"n": 0}]}'}, 2)
    put({"job-4": {"ops/1": {"n": 7}}}, 3)
    assert channel.flushed(5)
    replica.stop()
    assert json.loads((paths.queue / "job-4").read_bytes()) == {"ops": [{"n": 0}, {"n": 7}]}
    wire.whole.clear()
    put({"job-5": {"ops/0": {"n": 1}}}, 4)
    wait_for(lambda: channel.failure, "the channel to fail")
    put({"job-5": {"ops/0": {"n": 2}}}, 5)
    assert not channel._pending.files
    channel.put(lambda pending: pending.archive.append("job-5"), 6)
    wire.whole.set()
    wait_for(lambda: not channel.failure and channel.flushed(0), "the channel is well again")
    assert json.loads((paths.queue / "archive/0/job-5").read_bytes()) == {"ops": [{"n": 2}]}
    assert not (paths.queue / "job-4").exists()  # the snapshot has it no more


def test_an_idle_channel_notices_a_new_master(
    channel: Channel, replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ganeti.master.channel.HEARTBEAT", 0.1)
    channel.renew_config()  # so that it looks at the new time
    replica.master_claim(2, "node3.example.com")
    wait_for(lambda: channel.failure, "the channel to fail")
    assert "node3.example.com has become the master" in channel.failure.text


# votes -------------------------------------------------------------------------------------


class Nodes:
    """As much of a configuration as the rules of the vote look at."""

    def __init__(self, *nodes: Node) -> None:
        self.nodes = {item.uuid: item for item in nodes}


def answers(*views: Any) -> dict[str, Answer[MasterView]]:
    """Answers of nodes 1, 2, ...: a serial, or None for a node that is silent."""
    found: dict[str, Answer[MasterView]] = {}
    for number, serial in enumerate(views, 1):
        if serial is None:
            found[f"uuid-{number}"] = Answer(node(number), error=errors.RpcError("silent"))
        else:
            view = MasterView(master="node1.example.com", epoch=1, config_serial=serial)
            found[f"uuid-{number}"] = Answer(node(number), value=view)
    return found


def explain_missing(config: Any, own: vote.Own, *views: Any) -> str | None:
    return vote.explain_missing_answers(config, own, answers(*views))


def test_who_must_answer() -> None:
    config = Nodes(*(node(n) for n in range(1, 6)))
    own = vote.Own(node(1), 5, 0)
    assert explain_missing(config, own, 5, 5, 5, None, None) is None
    assert "only 2 of 5 nodes answered" in str(explain_missing(config, own, 5, 5, None, None, None))
    # a daemon that does not answer here would go on to do what the last master says
    assert "of this node" in str(explain_missing(config, own, None, 5, 5, 5, 5))
    alone = Nodes(node(1))
    assert explain_missing(alone, own, None) is None
    offline = Nodes(node(1), node(2), *(node(n, offline=True) for n in range(3, 6)))
    assert explain_missing(offline, own, 5, 5) is None


def test_who_has_more() -> None:
    config: Any = Nodes(*(node(n) for n in range(1, 4)))
    own = vote.Own(node(1), 5, 7)
    assert vote.find_newer_data(config, own, answers(5, 5, 4)) is None
    assert "node3.example.com" in str(vote.find_newer_data(config, own, answers(5, 5, 6)))
    more = answers(5, 5, None)
    view = more["uuid-2"].value
    assert view is not None
    view.last_job = 8
    assert "newer jobs" in str(vote.find_newer_data(config, own, more))


def test_a_later_master_has_more_whatever_an_older_one_counted() -> None:
    config: Any = Nodes(*(node(n) for n in range(1, 4)))
    own = vote.Own(node(1), 5, 7)
    found = answers(5, 9, 4)
    for name, newest in (("uuid-1", (3, 9)), ("uuid-2", (2, 99)), ("uuid-3", (3, 9))):
        view = found[name].value
        assert view is not None
        view.position = newest
    assert vote.find_newer_data(config, own, found) is None
    view.position = (3, 10)
    assert "newer data (term 3, write 10" in str(vote.find_newer_data(config, own, found))
    view.position = (4, 1)
    assert "make that node the master" in str(vote.find_newer_data(config, own, found))


def test_a_candidate_without_a_copy_does_not_count() -> None:
    config: Any = Nodes(*(node(n) for n in range(1, 4)))
    found = answers(5, 5, 5)
    del found["uuid-2"]
    assert vote.explain_missing_answers(config, vote.Own(node(1), 5, 7), found) is None
    view = found["uuid-3"].value
    assert view is not None
    view.config_serial = None
    assert "master candidates" in str(
        vote.explain_missing_answers(config, vote.Own(node(1), 5, 7), found)
    )


def test_the_second_candidate_may_still_wait_for_its_first_copy() -> None:
    """The master was killed while it added the node; of two it has acknowledged alone."""
    config: Any = Nodes(node(1), node(2))
    made_here, not_made_here = (vote.Own(node(1), 5, 7, made_here=made) for made in (True, False))
    found = answers(5, 5)
    view = found["uuid-2"].value
    assert view is not None
    view.config_serial = None
    assert vote.explain_missing_answers(config, made_here, found) is None
    # This node has its state from another master, which may have acknowledged more.
    assert vote.explain_missing_answers(config, not_made_here, found) is not None
    view.master = "node2.example.com"
    assert vote.explain_missing_answers(config, made_here, found) is not None
    view.master = "node1.example.com"
    # Of three, another one has acknowledged, too; it must be asked.
    three: Any = Nodes(node(1), node(2), node(3))
    assert vote.explain_missing_answers(three, made_here, found) is not None
    del found["uuid-2"]
    assert vote.explain_missing_answers(config, made_here, found) is not None


def place(found: dict[str, Answer[MasterView]], number: int, **values: Any) -> None:
    view = found[f"uuid-{number}"].value
    assert view is not None
    for name, value in values.items():
        setattr(view, name, value)


def test_the_master_of_before_a_boot_may_have_more_than_its_number_says() -> None:
    config: Any = Nodes(*(node(n) for n in range(1, 4)))
    own = vote.Own(node(2), 5, 7, position=(3, 8))
    found = answers(5, 5, None)
    place(found, 1, position=(3, 6), may_be_newer=True)
    place(found, 2, position=(3, 8))
    assert "may have newer data" in str(vote.find_newer_data(config, own, found))
    # The others are a majority without it: one of them has all that was acknowledged.
    found = answers(5, 5, 5)
    place(found, 1, position=(3, 9), may_be_newer=True)
    for number in (2, 3):
        place(found, number, position=(3, 8))
    assert "has newer data" in str(vote.find_newer_data(config, own, found))
    place(found, 1, position=(3, 6))
    assert vote.find_newer_data(config, own, found) is None
    # It was the master of an earlier term: that is over.
    found = answers(5, 5, None)
    place(found, 1, position=(2, 900), may_be_newer=True)
    assert vote.find_newer_data(config, own, found) is None
    # This node made the state itself.
    found = answers(5, 5, None)
    mine = vote.Own(node(1), 5, 7, position=(3, 6), made_here=True)
    place(found, 1, position=(3, 6), may_be_newer=True)
    place(found, 2, position=(3, 8))
    assert vote.find_newer_data(config, mine, found) is None


def test_whose_copy_a_candidate_takes_before_it_takes_over() -> None:
    config: Any = Nodes(*(node(n) for n in range(1, 5)))
    config.ndparams = lambda each: {"witness": each.name in ("node3.example.com",)}
    own = vote.Own(node(2), 5, 7, position=(3, 8))

    def find(*numbers: int | None) -> str | None:
        found = answers(*(None if n is None else 5 for n in numbers))
        for number, value in enumerate(numbers, 1):
            if value is not None:
                place(found, number, position=(3, value))
        witness = vote.find_witness_ahead(config, own, found)
        return None if witness is None else witness.name

    assert find(None, 8, 9, 8) == "node3.example.com"
    assert find(None, 8, 8, 8) is None
    assert find(None, 8, None, None) is None
    # Another candidate has it, too, and takes over itself.
    assert find(None, 8, 9, 9) is None
    # The master can send what it has.
    assert find(10, 8, 9, 8) is None
