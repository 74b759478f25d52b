"""Waits for job changes: no wake-up is lost, none comes twice, no thread is held."""

from __future__ import annotations

import threading
import weakref

import pytest

from ganeti import errors
from ganeti.master.waiting import Wait, Waiting


@pytest.fixture
def waiting():
    made = Waiting()
    yield made
    made.stop()


class Job:
    """A number that grows; clients wait until it is larger than what they know."""

    def __init__(self) -> None:
        self.version = 0

    def wait(self, known: int) -> tuple[Wait, list[object], threading.Event]:
        got: list[object] = []
        done = threading.Event()

        def check(last: bool) -> list[object] | None:
            return [self.version, last] if last or self.version > known else None

        def end(value: object) -> None:
            got.append(value)
            done.set()

        return Wait(1, check, end, end), got, done


def test_news_that_were_there_before_answer_at_once(waiting):
    job = Job()
    job.version = 1
    wait, got, _done = job.wait(0)
    waiting.add(wait, 60)
    assert got == [[1, False]]


def test_a_change_answers_all_who_wait_for_it_once(waiting):
    job = Job()
    waits = [job.wait(0) for _ in range(50)]
    for wait, _got, _done in waits:
        waiting.add(wait, 60)
    waiting.note_change(2)  # another job
    waiting.note_change(1)  # nothing new for them
    assert not any(got for _wait, got, _done in waits)
    job.version = 1
    waiting.note_change(1)
    waiting.note_change(1)
    assert all(got == [[1, False]] for _wait, got, _done in waits)


def test_the_end_of_the_time_answers_with_what_is(waiting):
    job = Job()
    long, long_got, _ = job.wait(0)
    short, got, done = job.wait(0)
    waiting.add(long, 60)
    waiting.add(short, 0.01)
    assert done.wait(20)
    assert got == [[0, True]]
    assert long_got == []


def test_changes_of_keys_over_the_limit_are_answered_later_in_one_go(waiting):
    tracked, further = Job(), Job()
    first, got, _ = tracked.wait(0)
    second, late, done = further.wait(0)
    second.key = 2
    waiting.add(first, 60, limit=1)
    waiting.add(second, 60, limit=1)
    further.version = 1
    waiting.note_change(2)
    further.version = 2
    waiting.note_change(2)
    tracked.version = 1
    waiting.note_change(1)
    assert got == [[1, False]]
    assert late == []
    assert done.wait(20)
    assert late == [[2, False]]
    # The first one is over, so there is room.
    third, at_once, _ = further.wait(2)
    third.key = 2
    waiting.add(third, 60, limit=1)
    further.version = 3
    waiting.note_change(2)
    assert at_once == [[3, False]]


def test_who_left_gets_no_answer(waiting):
    job = Job()
    wait, got, _done = job.wait(0)
    waiting.add(wait, 60)
    waiting.drop(wait)
    job.version = 1
    waiting.note_change(1)
    assert got == []


def test_an_error_is_handed_to_the_client(waiting):
    got: list[object] = []

    def check(_last: bool) -> None:
        raise errors.JobLost("gone")

    waiting.add(Wait(1, check, got.append, got.append), 60)
    assert isinstance(got[0], errors.JobLost)
    waiting.note_change(1)
    assert len(got) == 1


def test_no_wake_up_is_lost_between_looking_and_waiting(waiting):
    """Clients follow a job that changes as fast as it can; all reach its last version."""
    job, last = Job(), 300
    ends: list[int] = []

    def follow() -> None:
        known = 0
        while known < last:
            wait, got, done = job.wait(known)
            waiting.add(wait, 60)
            if not done.wait(20):
                return
            known = got[0][0]  # type: ignore[index]
        ends.append(known)

    threads = [threading.Thread(target=follow) for _ in range(6)]
    for thread in threads:
        thread.start()
    for _ in range(last):
        job.version += 1
        waiting.note_change(1)
    for thread in threads:
        thread.join(30)
    assert ends == [last] * 6


def test_waits_that_are_over_take_no_memory_until_their_time_is(waiting):
    job = Job()
    job.version = 1
    made = []
    for _ in range(1000):
        wait, got, _done = job.wait(0)
        waiting.add(wait, 3600)
        assert got == [[1, False]]
        made.append(weakref.ref(wait))
    del wait
    assert sum(ref() is not None for ref in made) <= 250
