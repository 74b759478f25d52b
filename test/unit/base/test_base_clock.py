"""Time stamps, and trying again without waiting in the test."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from ganeti.base import clock, retry


@given(st.integers(0, 2**32), st.integers(0, 999_999))
def test_a_stamp_survives(seconds: int, micros: int) -> None:
    moment = clock.merge([seconds, micros])
    assert moment is not None
    assert clock.split(moment) == [seconds, micros]


@given(st.floats(0, 2**33))
def test_microseconds_never_reach_a_second(moment: float) -> None:
    seconds, micros = clock.split(moment)
    assert 0 <= micros < 1_000_000
    assert abs(seconds + micros / 1e6 - moment) < 1e-5


def test_no_stamp_is_no_time() -> None:
    assert clock.merge(None) is None
    assert clock.split(0.9999999) == [1, 0]


def test_the_clock_of_the_machine_goes_forward() -> None:
    assert clock.SYSTEM.monotonic() <= clock.SYSTEM.monotonic()
    assert clock.SYSTEM.now() > 1_600_000_000


class Sleeper:
    """A clock that continues when somebody waits."""

    def __init__(self) -> None:
        self.time = 100.0
        self.pauses: list[float] = []

    def wait(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds

    def retry(self, results: Iterator[object], timeout: float, **options: float) -> object:
        return retry.retry_until(
            lambda: next(results),
            timeout=timeout,
            wait=self.wait,
            monotonic=lambda: self.time,
            **options,
        )


def test_the_first_success_is_returned_at_once() -> None:
    sleeper = Sleeper()
    assert sleeper.retry(iter(["now"]), 10) == "now"
    assert sleeper.retry(iter([None, None, 0]), 10) == 0
    assert len(sleeper.pauses) == 2


def test_pauses_grow_up_to_a_limit_and_end_with_the_time() -> None:
    sleeper = Sleeper()
    endless = iter(lambda: None, 1)
    assert sleeper.retry(endless, 10.0, first=1.0, factor=2.0, largest=4.0) is None
    assert sleeper.pauses == [1.0, 2.0, 4.0, 3.0]
    assert sleeper.time == 110.0


def test_without_time_there_is_one_attempt() -> None:
    sleeper = Sleeper()
    assert sleeper.retry(iter([None]), 0) is None
    assert sleeper.pauses == []


def test_pauses_are_endless() -> None:
    assert list(islice(retry.delays(1, 10, 50), 4)) == [1, 10, 50, 50]
