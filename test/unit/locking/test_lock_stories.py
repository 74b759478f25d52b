"""Locks as jobs meet them: waiting lines, ageing, creation and removal, real threads."""

from __future__ import annotations

import threading

import pytest

from ganeti import errors
from ganeti.locking.manager import LockManager
from ganeti.locking.request import ALL, Request, State

CLUSTER, INSTANCE, NODE = range(3)


class SteppedClock:
    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


class Locks(LockManager):
    """A manager with a short way to ask, and a list of who was called back, in order."""

    def __init__(self) -> None:
        self.clock = SteppedClock()
        super().__init__(("cluster", "instance", "node"), self.clock)
        self.told: list[tuple[object, State]] = []
        self.create(INSTANCE, ["web1", "web2", "web3"])

    def ask(self, owner, names, *, shared=False, level=INSTANCE, **more) -> Request:
        return self.request(owner, level, names, shared=shared, on_done=self._record, **more)

    def _record(self, request: Request) -> None:
        self.told.append((request.owner, request.state))

    def line(self, name: str) -> list[tuple[str, object]]:
        view = next(row for row in self.snapshot() if row.name == name)
        return list(view.pending)


@pytest.fixture
def locks() -> Locks:
    return Locks()


def test_a_free_lock_is_granted_at_once_and_without_a_call(locks):
    assert locks.ask(1, ["web1"]).state is State.GRANTED
    assert locks.told == []


def test_waiters_are_served_in_the_order_of_their_arrival(locks):
    locks.ask(1, ["web1"])
    for job in (2, 3, 4):
        assert locks.ask(job, ["web1"]).state is State.WAITING
    for job in (1, 2, 3):
        locks.release(job)
    assert locks.told == [(2, State.GRANTED), (3, State.GRANTED), (4, State.GRANTED)]


def test_a_reader_does_not_pass_a_waiting_writer(locks):
    locks.ask(1, ["web1"], shared=True)
    locks.ask(2, ["web1"])
    assert locks.ask(3, ["web1"], shared=True).state is State.WAITING
    locks.release(1)
    assert locks.told == [(2, State.GRANTED)]
    locks.release(2)
    assert locks.told[1:] == [(3, State.GRANTED)]


def test_readers_behind_a_canceled_writer_go_on(locks):
    locks.ask(1, ["web1"], shared=True)
    writer = locks.ask(2, ["web1"])
    locks.ask(3, ["web1"], shared=True)
    locks.ask(4, ["web1"], shared=True)
    assert locks.cancel(writer)
    assert not locks.cancel(writer)
    assert locks.told == [(3, State.GRANTED), (4, State.GRANTED)]


def test_a_request_for_several_locks_holds_none_while_it_waits(locks):
    locks.ask(1, ["web1"])
    locks.ask(2, ["web1", "web2"])
    assert locks.list_held(2, INSTANCE) == frozenset()
    assert locks.line("instance/web2") == [("exclusive", 2)]
    locks.release(1)
    assert locks.list_held(2, INSTANCE) == {"web1", "web2"}


def test_all_names_and_one_name_exclude_each_other(locks):
    locks.ask(1, ALL, shared=True)
    assert locks.ask(2, ["web1"], shared=True).state is State.GRANTED
    assert locks.ask(3, ["web1"]).state is State.WAITING
    assert locks.ask(4, ALL).state is State.WAITING
    locks.release(2)
    assert locks.told == []
    locks.release(1)
    assert locks.told == [(3, State.GRANTED)]
    locks.release(3)
    assert locks.told[1:] == [(4, State.GRANTED)]
    locks.create(INSTANCE, ["web9"])
    assert "web9" in locks.list_held(4, INSTANCE)


def test_more_urgent_waiters_go_first_and_waiting_makes_urgent(locks):
    locks.ask(1, ["web1"])
    locks.ask(2, ["web1"], priority=10)
    locks.clock.time = 60.0
    locks.ask(3, ["web1"], priority=5)
    assert [owner for _mode, owner in locks.line("instance/web1")] == [3, 2]
    locks.age(10.0)
    assert [owner for _mode, owner in locks.line("instance/web1")] == [2, 3]
    locks.set_priority(3, -20)
    assert [owner for _mode, owner in locks.line("instance/web1")] == [3, 2]
    locks.release(1)
    assert locks.told == [(3, State.GRANTED)]


def test_ageing_all_at_once_lets_nobody_overtake(locks):
    locks.ask(1, ["web1"], shared=True)
    locks.ask(2, ["web1"], shared=True, priority=1)
    locks.ask(3, ["web1"], priority=0)
    locks.release(2)
    reader = locks.ask(4, ["web1"], shared=True, priority=1)
    locks.clock.time = 10.0
    locks.age(10.0)
    assert reader.state is State.WAITING
    assert [owner for _mode, owner in locks.line("instance/web1")] == [3, 4]


def test_losing_urgency_lets_others_pass(locks):
    locks.ask(1, ["web1"], shared=True)
    locks.ask(2, ["web1"])
    locks.ask(3, ["web1"], shared=True)
    locks.set_priority(2, 10)
    assert locks.told == [(3, State.GRANTED)]


@pytest.mark.parametrize("level", [CLUSTER, INSTANCE])
def test_levels_are_taken_in_order_and_once(locks, level):
    locks.create(CLUSTER, ["BGL"])
    locks.ask(1, ["web1"])
    with pytest.raises(errors.LockError, match="level instance"):
        locks.ask(1, (), level=level)
    assert locks.list_held(1, INSTANCE) == {"web1"}


def test_an_owner_that_waits_cannot_ask_again(locks):
    locks.ask(1, ["web1"])
    locks.ask(2, ["web1"])
    with pytest.raises(errors.LockError, match="waits for locks already"):
        locks.ask(2, (), level=NODE)


def test_an_unknown_name_is_named(locks):
    with pytest.raises(errors.LockError, match="instance nowhere was removed meanwhile"):
        locks.ask(1, ["nowhere"])


def test_whoever_waits_for_a_removed_lock_fails(locks):
    locks.ask(1, ["web1"])
    waiting = locks.ask(2, ["web1", "web2"])
    locks.remove(1, INSTANCE, "web1")
    assert locks.told == [(2, State.FAILED)]
    assert "web1 was removed" in errors.text(waiting.error)
    assert locks.ask(3, ["web2"]).state is State.GRANTED
    with pytest.raises(errors.LockError, match="was removed meanwhile"):
        locks.ask(4, ["web1"])


def test_a_lock_that_goes_is_granted_to_nobody_in_its_line(locks):
    locks.ask(1, ["web1"])
    locks.ask(2, ["web1", "web2"])
    locks.ask(3, ["web2"])
    locks.ask(4, ["web2"])
    locks.discard(INSTANCE, "web2")
    assert locks.told == [(2, State.FAILED), (3, State.FAILED), (4, State.FAILED)]
    assert locks.list_held(3, INSTANCE) == frozenset()


def test_a_lock_in_use_is_not_discarded(locks):
    locks.ask(1, ["web1"], shared=True)
    with pytest.raises(errors.LockError, match="web1 is being held"):
        locks.discard(INSTANCE, "web1")
    with pytest.raises(errors.LockError, match="not held exclusively"):
        locks.remove(1, INSTANCE, "web1")


def test_a_new_lock_belongs_to_its_maker_and_vanishes_with_it(locks):
    locks.ask(1, (), new=["web4"])
    assert locks.holds(1, INSTANCE, "web4", shared=False)
    with pytest.raises(errors.LockError, match=r"'web4' exists already \(used by job 1\)"):
        locks.ask(2, (), new=["web4"])
    locks.ask(2, ["web4"])
    locks.release(1)
    assert locks.told == [(2, State.FAILED)]
    assert locks.ask(3, (), new=["web4"]).state is State.GRANTED
    locks.keep(3, INSTANCE, ["web4"])
    locks.release(3)
    assert locks.ask(4, ["web4"]).state is State.GRANTED


def test_two_jobs_cannot_promise_the_same_name(locks):
    locks.ask(1, ["web1"])
    waiting = locks.ask(2, ["web1"], new=["web4"])
    with pytest.raises(errors.LockError, match="being added by job 2"):
        locks.ask(3, (), new=["web4"])
    locks.cancel(waiting)
    assert locks.ask(3, (), new=["web4"]).state is State.GRANTED


@pytest.mark.parametrize("wrong", [{"names": ALL}, {"names": (), "shared": True}])
def test_locks_are_made_by_exclusive_requests_for_names_only(locks, wrong):
    with pytest.raises(errors.ProgrammerError):
        locks.ask(1, **wrong, new=["web4"])
    assert locks.ask(1, (), new=["web4"]).state is State.GRANTED


def test_a_lock_that_may_vanish_is_not_shared(locks):
    locks.ask(1, (), new=["web4"])
    with pytest.raises(errors.ProgrammerError, match="web4"):
        locks.downgrade(1, INSTANCE)
    locks.keep(1, INSTANCE, ["web4"])
    locks.downgrade(1, INSTANCE)
    assert locks.ask(2, ["web4"], shared=True).state is State.GRANTED
    locks.release(1)
    locks.release(2)


def test_downgrading_lets_readers_in_but_no_writer_in_between(locks):
    locks.ask(1, ["web1"])
    locks.ask(2, ["web1"], shared=True)
    locks.ask(3, ["web1"])
    locks.downgrade(1, INSTANCE)
    assert locks.told == [(2, State.GRANTED)]
    assert locks.holds(1, INSTANCE, "web1")
    assert not locks.holds(1, INSTANCE, "web1", shared=False)


def test_what_is_free_can_be_taken_without_waiting(locks):
    locks.ask(1, ["web1"])
    locks.ask(2, ["web2"], shared=True)
    assert locks.take_free(3, INSTANCE, ALL, shared=True) == {"web2", "web3"}
    locks.release(3)
    assert locks.take_free(3, INSTANCE, ["web1", "web2", "gone"], shared=False) == frozenset()
    assert locks.ask(3, ["web3"]).state is State.GRANTED  # nothing was taken, so the level is free


def test_releasing_everything_wakes_all_levels(locks):
    locks.create(NODE, ["node1"])
    locks.ask(1, ["web1"])
    locks.ask(1, ["node1"], level=NODE)
    locks.ask(2, ["web1"])
    locks.ask(3, ["node1"], level=NODE)
    locks.release(1)
    assert sorted(locks.told) == [(2, State.GRANTED), (3, State.GRANTED)]
    locks.release(1)  # nothing left: no error


def test_a_part_can_be_released(locks):
    locks.ask(1, ["web1", "web2"])
    locks.ask(2, ["web1"])
    locks.release(1, INSTANCE, ["web1"])
    assert locks.told == [(2, State.GRANTED)]
    assert locks.list_held(1, INSTANCE) == {"web2"}


def test_callbacks_may_use_the_locks(locks):
    """A grant is handed on from inside the call, as the job queue does it."""
    order = []

    def chain(request: Request) -> None:
        order.append(request.owner)
        locks.release(request.owner)

    locks.ask(0, ["web1"])
    for job in range(1, 200):
        locks.request(job, INSTANCE, ["web1"], shared=False, on_done=chain)
    locks.release(0)
    assert order == list(range(1, 200))


def test_threads_exclude_each_other_and_nobody_is_forgotten():
    locks = LockManager(("cluster", "instance"))
    names = ["a", "b", "c"]
    locks.create(1, names)
    inside = {name: [0, 0] for name in names}  # readers, writers
    guard = threading.Lock()
    wrong: list[str] = []

    def enter(taken, shared, step):
        with guard:
            for name in taken:
                inside[name][0 if shared else 1] += step
                readers, writers = inside[name]
                if writers > 1 or (writers and readers):
                    wrong.append(f"{name}: {readers} readers, {writers} writers")

    def worker(number: int) -> None:
        for turn in range(300):
            taken = names if (turn + number) % 7 == 0 else [names[(turn * number) % 3]]
            shared = (turn + number) % 2 == 0
            decided = threading.Event()
            request = locks.request(
                number,
                1,
                ALL if len(taken) == 3 else taken,
                shared=shared,
                on_done=lambda _request, told=decided: told.set(),
            )
            if request.state is not State.GRANTED and turn % 11 == 0 and locks.cancel(request):
                continue
            if request.state is not State.GRANTED and not decided.wait(20):
                wrong.append(f"owner {number} was forgotten")
                return
            enter(taken, shared, 1)
            enter(taken, shared, -1)
            locks.release(number)

    threads = [threading.Thread(target=worker, args=(n,)) for n in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert all(not row.owners and not row.pending for row in locks.snapshot())


# what an object that is gone leaves -------------------------------------------------------------


def test_locks_of_objects_that_are_gone_are_forgotten_whoever_holds_them(locks):
    locks.ask(1, ["web1", "web2"])
    locks.keep(1, INSTANCE, ["web1"])
    waiting = locks.ask(2, ["web2", "web3"])
    locks.forget(INSTANCE, ["web2", "nowhere"])
    assert locks.told == [(2, State.FAILED)]
    assert "instance web2 was removed meanwhile" in errors.text(waiting.error)
    assert locks.list_held(1, INSTANCE) == {"web1"}
    assert locks.ask(3, ["web3"]).state is State.GRANTED
    locks.forget(INSTANCE, ["web2"])
    locks.create(INSTANCE, ["web2"])
    assert not locks.holds(1, INSTANCE, "web2")
    locks.release(1)
    assert locks.ask(4, ["web1", "web2"]).state is State.GRANTED


def test_a_forgotten_lock_leaves_those_of_other_levels_and_of_all_names(locks):
    locks.create(NODE, ["web1", "node1"])
    locks.ask(1, ["web1"], level=NODE)
    locks.ask(2, ALL)
    locks.forget(INSTANCE, ["web1"])
    assert locks.list_held(1, NODE) == {"web1"}
    assert locks.list_held(2, INSTANCE) == {"web2", "web3"}


def test_a_new_lock_that_was_forgotten_does_not_vanish_a_second_time(locks):
    locks.ask(1, ["web1"], new=["web4"])
    locks.forget(INSTANCE, ["web4"])
    assert locks.ask(2, (), new=["web4"]).state is State.GRANTED
    locks.keep(2, INSTANCE, ["web4"])
    locks.release(1)
    assert locks.list_held(2, INSTANCE) == {"web4"}
    locks.release(2)
    assert locks.ask(3, ["web4"]).state is State.GRANTED


def test_who_removes_a_lock_holds_the_others_on(locks):
    locks.ask(1, ["web1"], new=["web4"])
    for name in ("web4", "web1"):
        locks.remove(1, INSTANCE, name)
    assert locks.list_held(1, INSTANCE) == frozenset()
    locks.release(1)
    with pytest.raises(errors.LockError, match=r"instance/web2 is not held exclusively by 1 and"):
        locks.remove(1, INSTANCE, "web2")
    locks.ask(2, ALL)
    locks.remove(2, INSTANCE, "web2")
    with pytest.raises(errors.LockError, match=r"instance/web2 is not held exclusively by 2 and"):
        locks.remove(2, INSTANCE, "web2")
    locks.discard(INSTANCE, "nowhere")  # nothing to do: no error


# what can be read -------------------------------------------------------------------------------


def test_the_list_of_locks_has_owners_modes_and_waiters_in_order(locks):
    locks.create(CLUSTER, ["BGL"])
    for owner in (1, 2, 3):
        locks.ask(owner, ["BGL"], shared=True, level=CLUSTER)
    locks.ask(1, ["web2"])
    locks.ask(2, ["web2"], shared=True)
    locks.ask(3, ALL)
    rows = {row.name: (row.mode, row.owners, row.pending) for row in locks.snapshot()}
    assert list(rows) == [
        "cluster/BGL",
        "cluster/[lockset]",
        "instance/web1",
        "instance/web2",
        "instance/web3",
        "instance/[lockset]",
        "node/[lockset]",
    ]
    assert rows["cluster/BGL"] == ("shared", (1, 2, 3), ())
    assert rows["cluster/[lockset]"] == (None, (), ())
    assert rows["instance/web2"] == ("exclusive", (1,), (("shared", 2),))
    assert rows["instance/[lockset]"] == (None, (), (("exclusive", 3),))


def test_a_wait_is_explained_by_those_who_hold_and_those_ahead(locks):
    locks.ask(1, ["web1"])
    locks.ask(2, ["web2"], shared=True)
    locks.clock.time = 10.0
    locks.ask(3, ["web1"], shared=True)
    locks.clock.time = 15.0
    locks.ask(4, ["web2", "web1"])
    locks.ask(5, ["web1"])
    locks.clock.time = 18.5
    found = locks.explain(4)
    assert (found.level, found.names, found.mode, found.age) == (
        "instance",
        ("web1", "web2"),
        "exclusive",
        3.5,
    )
    first, second = found.obstacles
    assert (first.lock, first.mode) == ("instance/web1", "exclusive")
    assert (first.holders, first.ahead) == (((1, "exclusive"),), (3,))
    assert (second.lock, second.holders, second.ahead) == ("instance/web2", ((2, "shared"),), ())
    assert locks.explain(3).mode == "shared"
    [only] = locks.explain(5).obstacles
    assert (only.lock, only.ahead) == ("instance/web1", (3, 4))


def test_a_wait_for_all_names_is_explained_by_those_who_hold_some(locks):
    locks.ask(1, ["web1"])
    locks.ask(2, ["web2"], shared=True)
    locks.ask(3, ALL, shared=True)
    locks.ask(4, ["web3"])
    found = locks.explain(3)
    assert found.names is None
    [whole] = found.obstacles
    assert (whole.lock, whole.holders) == ("instance/[lockset]", ((1, "parts of it"),))
    [whole] = locks.explain(4).obstacles
    assert (whole.lock, whole.holders, whole.ahead) == ("instance/[lockset]", (), (3,))


def test_who_does_not_wait_needs_no_explanation(locks):
    waiting = locks.ask(1, ["web1"])
    assert locks.explain(1) is None
    assert locks.find_waiting(1) is None
    waiting = locks.ask(2, ["web1"])
    assert locks.find_waiting(2) is waiting
    locks.release(1)
    assert locks.explain(2) is None
    assert not locks.cancel(waiting)
    locks.set_priority(2, 5)
    assert locks.list_held(2, INSTANCE) == {"web1"}


def test_each_owner_holds_what_it_was_granted(locks):
    assert locks.list_held(1, INSTANCE) == frozenset()
    assert not locks.holds(1, INSTANCE, "web1")
    locks.ask(1, ["web1"], shared=True)
    assert locks.holds(1, INSTANCE, "web1")
    assert not locks.holds(1, INSTANCE, "web1", shared=False)
    assert not locks.holds(1, INSTANCE, "web2")
    assert not locks.holds(1, NODE, "web1")
    locks.release(1)
    locks.ask(2, ALL)
    assert locks.holds(2, INSTANCE, "web1", shared=False)
    assert locks.list_held(2, INSTANCE) == {"web1", "web2", "web3"}


def test_a_lock_on_all_names_is_released_as_one(locks):
    locks.ask(1, ALL)
    with pytest.raises(errors.LockError, match="1 holds all locks of level instance as one"):
        locks.release(1, INSTANCE, ["web1"])
    locks.release(1, NODE)
    assert locks.list_held(1, INSTANCE) == {"web1", "web2", "web3"}
    locks.release(1, INSTANCE)
    assert locks.ask(2, ["web1"]).state is State.GRANTED


def test_the_highest_level_that_an_owner_holds_is_named(locks):
    locks.create(NODE, ["node1"])
    locks.ask(1, ["web1"])
    locks.ask(1, ["node1"], level=NODE)
    text = "1 holds locks of level node and cannot take locks of level instance any more"
    with pytest.raises(errors.LockError, match=text):
        locks.ask(1, ["web2"])
    with pytest.raises(errors.LockError, match=text):
        locks.take_free(1, INSTANCE, ALL, shared=True)


def test_waiting_makes_urgent_by_full_periods(locks):
    locks.ask(1, ["web1"])
    waiting = locks.ask(2, ["web1"], priority=5)
    for seconds, effective in ((9.9, 5), (10.0, 4), (29.0, 3), (30.0, 2)):
        locks.clock.time = seconds
        locks.age(10.0)
        assert (waiting.effective, waiting.priority) == (effective, 5)
    locks.set_priority(2, 0)
    assert (waiting.effective, waiting.priority) == (0, 0)
    locks.age(10.0)
    assert waiting.effective == -3
    assert waiting.key == (-3, waiting.seq)
