"""Which instances the watcher starts, cleans up and whose disks it activates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganeti import errors, paths
from ganeti.luxi.client import QueryResult, Submission
from ganeti.model import start_order
from ganeti.model.enums import AdminState, InstanceStatus
from ganeti.upkeep import instances, memory
from ganeti.upkeep.memory import (
    FORGET_AFTER,
    MAX_ATTEMPTS,
    WELL_AFTER,
    Attempts,
    Kind,
    Memory,
)
from ganeti.upkeep.round import Options, Round, read_options
from ganeti.upkeep.view import Group, Instance

NOW = 1000.0
BOOTS = {"node1": "boot-1", "node2": "boot-2", "node3": None}


def instance(
    name: str = "web1",
    status: InstanceStatus = InstanceStatus.RUNNING,
    *,
    wanted: AdminState = AdminState.UP,
    active: bool = True,
    nodes: tuple[str, ...] = ("node1", "node2"),
) -> Instance:
    return Instance(f"u-{name}", name, status, wanted, active, nodes[0], nodes[1:], "drbd")


def decide(known: Memory, *found: Instance, offline: str = "") -> list[tuple[str, str]]:
    group = Group("g", "default", found, BOOTS, frozenset([offline]))
    found_actions = instances.decide(group, known, NOW)
    return [(str(action.op["OP_ID"]), action.name) for action in found_actions]


def make_memory(**boots: str) -> Memory:
    return Memory(boots={"node1": "boot-1", "node2": "boot-2", **boots})


def test_what_should_run_and_does_not_is_started() -> None:
    down = instance(status=InstanceStatus.ERROR_DOWN)
    assert decide(make_memory(), down, instance("web2")) == [("OP_INSTANCE_STARTUP", "web1")]


@pytest.mark.parametrize(
    "status",
    [
        InstanceStatus.RUNNING,
        InstanceStatus.ADMIN_DOWN,
        InstanceStatus.ADMIN_OFFLINE,
        InstanceStatus.ERROR_UP,
        InstanceStatus.ERROR_WRONG_NODE,
        InstanceStatus.ERROR_NODE_DOWN,
        InstanceStatus.ERROR_NODE_OFFLINE,
    ],
)
def test_others_are_left_alone(status: InstanceStatus) -> None:
    assert decide(make_memory(), instance(status=status)) == []


def test_after_five_attempts_a_person_must_look() -> None:
    memory_of = make_memory()
    down = instance(status=InstanceStatus.ERROR_DOWN)
    memory_of.attempts[Kind.RESTART, "web1"] = Attempts(MAX_ATTEMPTS - 1, 1.0)
    assert decide(memory_of, down)
    memory_of.note(Kind.RESTART, "web1", 2.0)
    assert decide(memory_of, down) == []


def test_no_attempt_is_wasted_while_a_node_of_its_disks_does_not_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    down = instance(status=InstanceStatus.ERROR_DOWN, nodes=("node1", "node3"))
    assert decide(make_memory(), down) == []
    assert "started when node node3 answers" in caplog.text
    assert decide(make_memory(), down, offline="node3") == [("OP_INSTANCE_STARTUP", "web1")]


def test_attempts_are_forgotten_when_it_runs_or_after_eight_hours() -> None:
    tried = make_memory()
    tried.note(Kind.RESTART, "web1", 100.0)
    tried.note(Kind.RESTART, "gone", 100.0)
    tried.keep_only(["web1"])
    tried.drop_old(100.0 + FORGET_AFTER - 1)
    assert tried.count(Kind.RESTART, "web1") == 1
    assert tried.count(Kind.RESTART, "gone") == 0
    decide(tried, instance())
    assert tried.count(Kind.RESTART, "web1") == 0
    tried.note(Kind.RESTART, "web1", 100.0)
    tried.drop_old(100.0 + FORGET_AFTER)
    assert tried.count(Kind.RESTART, "web1") == 0


def test_one_that_is_seen_running_soon_after_an_attempt_may_end_again() -> None:
    tried = make_memory()
    tried.note(Kind.RESTART, "web1", NOW - WELL_AFTER + 1)
    decide(tried, instance())
    assert tried.count(Kind.RESTART, "web1") == 1
    tried.attempts[Kind.RESTART, "web1"] = Attempts(1, NOW - WELL_AFTER)
    decide(tried, instance())
    assert tried.count(Kind.RESTART, "web1") == 0


def test_what_its_user_stopped_is_recorded_as_stopped_once() -> None:
    stopped = instance(status=InstanceStatus.USER_DOWN)
    [action] = instances.decide(Group("g", "default", (stopped,), BOOTS), make_memory(), NOW)
    assert action.op["OP_ID"] == "OP_INSTANCE_SHUTDOWN"
    assert action.op["admin_state_source"] == "user"
    recorded = instance(status=InstanceStatus.USER_DOWN, wanted=AdminState.DOWN)
    assert decide(make_memory(), recorded) == []


class TestBoots:
    def test_disks_of_a_node_that_booted_are_activated_on_both_sides(self) -> None:
        changed = make_memory(node2="before")
        found = [
            instance("secondary"),
            instance("primary", nodes=("node2", "node1")),
            instance("elsewhere", nodes=("node1",)),
            instance("idle", active=False),
        ]
        assert decide(changed, *found) == [
            ("OP_INSTANCE_ACTIVATE_DISKS", "secondary"),
            ("OP_INSTANCE_ACTIVATE_DISKS", "primary"),
        ]

    def test_a_node_that_is_seen_for_the_first_time_did_not_boot(self) -> None:
        assert decide(Memory(), instance()) == []

    def test_one_that_must_be_started_gets_its_disks_by_that(self) -> None:
        down = instance(status=InstanceStatus.ERROR_DOWN)
        assert decide(make_memory(node1="before"), down) == [("OP_INSTANCE_STARTUP", "web1")]

    def test_not_while_its_other_node_does_not_answer(self) -> None:
        assert decide(make_memory(node1="before"), instance(nodes=("node1", "node3"))) == []


class Master:
    """A master with some locks, which takes jobs or does not."""

    def __init__(self, locks: list[tuple[str, str | None, list[Any]]], refusal: str = "") -> None:
        self.locks, self.refusal = locks, refusal
        self.waiting: list[str] = []
        self.ops: list[dict[str, Any]] = []

    def query(self, what: str, _fields: list[str], _filter: Any) -> QueryResult:
        if what == "job":
            return QueryResult([], [[(0, [text])] for text in self.waiting])
        assert what == "lock"
        return QueryResult([], [[(0, value) for value in row] for row in self.locks])

    def submit_many_jobs(self, jobs: list[list[dict[str, Any]]]) -> list[Submission]:
        self.ops += [op for [op] in jobs]
        return [Submission(None, self.refusal) if self.refusal else Submission(9) for _ in jobs]


def run(master: Master, where: Path, *found: Instance, moment: float = 1000.0) -> None:
    clock: Any = SimpleNamespace(now=lambda: moment)
    client: Any = master
    now = Round(client, clock, paths.Paths(where), Options(job_age=1))
    now.__dict__["groups"] = [Group("g", "default", found, BOOTS)]
    for directory in (paths.Paths(where).data, paths.Paths(where).locks):
        directory.mkdir(parents=True, exist_ok=True)
    instances.run(now)


def test_a_run_remembers_its_attempts_and_says_who_asked(tmp_path: Path) -> None:
    master = Master([])
    run(master, tmp_path, instance(status=InstanceStatus.ERROR_DOWN))
    [op] = master.ops
    assert op["reason"][0][0] == "gnt:watcher"
    state = memory.load(paths.Paths(tmp_path).watcher_state("g"))
    assert state.attempts == {(Kind.RESTART, "web1"): Attempts(1, 1000.0)}
    assert state.boots == {"node1": "boot-1", "node2": "boot-2"}


def test_runs_in_quick_succession_are_one_attempt_each_minute(tmp_path: Path) -> None:
    down = instance(status=InstanceStatus.ERROR_DOWN)
    for moment, count in ((1000.0, 1), (1015.0, 1), (1060.0, 2)):
        run(Master([]), tmp_path, down, moment=moment)
        state = memory.load(paths.Paths(tmp_path).watcher_state("g"))
        assert state.count(Kind.RESTART, "web1") == count


@pytest.mark.parametrize("lock", [("instance/web1", "exclusive", []), ("instance/web1", None, [1])])
def test_an_instance_that_a_job_works_on_is_left_to_the_next_run(tmp_path: Path, lock: Any) -> None:
    master = Master([lock])
    down = InstanceStatus.ERROR_DOWN
    run(master, tmp_path, instance(status=down), instance("web2", down))
    assert [op["instance_name"] for op in master.ops] == ["web2"]


def test_a_job_that_is_refused_is_no_attempt(tmp_path: Path) -> None:
    with pytest.raises(errors.GenericError, match="web1: the queue is drained"):
        run(
            Master([], "the queue is drained"),
            tmp_path,
            instance(status=InstanceStatus.ERROR_DOWN),
        )
    assert memory.load(paths.Paths(tmp_path).watcher_state("g")).attempts == {}


def test_an_attempt_is_on_disk_before_its_job_can_end(tmp_path: Path) -> None:
    path = paths.Paths(tmp_path).watcher_state("g")

    class Quick(Master):
        def submit_many_jobs(self, jobs: list[list[dict[str, Any]]]) -> list[Submission]:
            assert memory.load(path).count(Kind.RESTART, "web1") == 1
            path.unlink()
            return super().submit_many_jobs(jobs)

    run(Master([]), tmp_path, instance())
    run(Quick([]), tmp_path, instance(status=InstanceStatus.ERROR_DOWN))
    assert not path.exists()  # nothing was left to write


def test_a_master_that_goes_away_costs_no_attempt(tmp_path: Path) -> None:
    class Gone(Master):
        def submit_many_jobs(self, jobs: list[list[dict[str, Any]]]) -> list[Submission]:
            raise errors.NoMasterError("the master daemon does not answer")

    with pytest.raises(errors.NoMasterError):
        run(Gone([]), tmp_path, instance(status=InstanceStatus.ERROR_DOWN))
    assert memory.load(paths.Paths(tmp_path).watcher_state("g")).attempts == {}


names = st.text("abc.-", min_size=1, max_size=5)


@given(
    attempts=st.dictionaries(
        st.tuples(st.sampled_from(Kind), names),
        st.builds(Attempts, st.integers(1, 99), st.floats(0, 1e10)),
    ),
    boots=st.dictionaries(names, st.text("0123456789abcdef-", max_size=36)),
)
def test_what_is_saved_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, attempts: Any, boots: Any
) -> None:
    path = tmp_path_factory.mktemp("state") / "watcher.data"
    memory.save(path, Memory(attempts, boots))
    found = memory.load(path)
    assert (found.attempts, found.boots) == (attempts, boots)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"instance":{"web1":{"restart_count":"x"}}}', b'{"node":7}']
)
def test_a_broken_memory_is_told_and_counts_as_empty(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: bytes
) -> None:
    path = tmp_path / "watcher.data"
    path.write_bytes(text)
    assert memory.load(path) == Memory()
    assert "cannot be read" in caplog.text


def test_starts_go_by_their_order_and_so_many_at_a_time_on_a_node(tmp_path: Path) -> None:
    master = Master([])
    down = InstanceStatus.ERROR_DOWN
    tags = {"web": (), "db": ("ganeti:order:10",), "dns": ("x", "ganeti:order:1"), "app": ()}
    found = [
        replace(instance(name, down, nodes=("node2", "node1")), tags=tags[name]) for name in tags
    ]
    stopped = instance("mine", InstanceStatus.USER_DOWN)
    run(master, tmp_path, found[0], stopped, *found[1:])
    shutdown, *starts = master.ops
    assert shutdown["OP_ID"] == "OP_INSTANCE_SHUTDOWN"
    assert len(shutdown["reason"]) == 1
    assert [op["instance_name"] for op in starts] == ["dns", "db", "web", "app"]
    ended = ["success", "error", "canceled"]
    assert [op.get("depends") for op in starts] == [
        None,
        [[-1, ended]],
        [[-1, ended]],
        [[-2, ended]],
    ]
    assert {op["reason"][1][1] for op in starts} == {"rate-limit:4:starts on node2"}


def test_a_start_that_waits_in_the_queue_is_not_submitted_again(tmp_path: Path) -> None:
    master = Master([])
    master.waiting = ["INSTANCE_STARTUP(web1)", "CLUSTER_VERIFY", "NODE_ADD(web2)"]
    down = InstanceStatus.ERROR_DOWN
    run(master, tmp_path, instance(status=down), instance("web2", down))
    assert [op["instance_name"] for op in master.ops] == ["web2"]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ((), start_order.USUAL),
        (("ganeti:order:0",), 0),
        (("ganeti:order:20", "ganeti:order:7"), 7),
        (
            ("ganeti:order:", "ganeti:order:x", "ganeti:order:-1", "ganeti:order:10000"),
            start_order.USUAL,
        ),
        (("my-ganeti:order:1",), start_order.USUAL),
    ],
)
def test_the_order_is_a_tag(tags: tuple[str, ...], expected: int) -> None:
    assert start_order.get_order(tags) == expected


@given(st.lists(st.integers(0, 3), max_size=200))
def test_each_job_waits_for_the_last_ones_of_the_order_before_it(orders: list[int]) -> None:
    orders.sort()
    for index, depends in enumerate(start_order.make_dependencies(orders)):
        waited = {index + relative for relative, _how in depends}
        earlier = [other for other in range(index) if orders[other] < orders[index]]
        last = [other for other in earlier if orders[other] == orders[earlier[-1]]]
        assert waited == set(last[-start_order.MOST :])


def test_what_stops_first_was_started_last() -> None:
    found = [replace(instance(name), tags=(f"ganeti:order:{name[-1]}",)) for name in ("a2", "b1")]
    assert [item.name for item in start_order.sort([*found, instance("c")])] == ["b1", "a2", "c"]
    assert [item.name for item in start_order.sort(found, stop=True)] == ["a2", "b1"]


def test_the_options_of_the_watcher_hold_for_the_node_daemon_too() -> None:
    words = ["--job-age", "60", "--start-parallel", "2", "--ignore-pause"]
    assert read_options(words) == Options(parallel=2, ignore_pause=True)
    assert read_options([]) == Options()


def test_an_invalid_option_is_named() -> None:
    with pytest.raises(errors.ConfigurationError, match=r"WATCHER_ARGS: .*--start-parallel"):
        read_options(["--start-parallel", "0"])
