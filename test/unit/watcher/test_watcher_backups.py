"""Which backups the watcher begins."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from ganeti.watcher.backups import Plan, find_due

HOUR = 3600.0


def plan(name: str, last: float, node: str = "node1", every: float = 24, at: str = "") -> Plan:
    return Plan(name, node, every, at, last)


def names(plans: list[Plan], now: float, waiting: tuple[str, ...] = ()) -> list[str]:
    return [each.name for each in find_due(plans, waiting, now)]


def test_a_backup_is_due_when_its_hours_are_over() -> None:
    assert names([plan("web1", 0.0)], 24 * HOUR - 1) == []
    assert names([plan("web1", 0.0)], 24 * HOUR) == ["web1"]


def test_the_longest_overdue_come_first_and_two_on_a_node() -> None:
    plans = [plan("web1", 3 * HOUR), plan("web2", 1 * HOUR), plan("web3", 2 * HOUR)]
    plans.append(plan("web4", 4 * HOUR, node="node2"))
    assert names(plans, 100 * HOUR) == ["web2", "web3", "web4"]


def test_what_waits_or_runs_is_not_begun_again_and_counts() -> None:
    plans = [plan("web1", 1 * HOUR), plan("web2", 2 * HOUR), plan("web3", 3 * HOUR)]
    assert names(plans, 100 * HOUR, ("web1",)) == ["web2"]


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The local time of a place with summer time."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("last", "every", "now", "due"),
    [
        (None, 24, "2026-11-24 10:00", False),
        (None, 24, "2026-11-25 02:29", False),
        (None, 24, "2026-11-25 02:30", True),
        ("2026-11-24 04:10", 24, "2026-11-25 02:29", False),
        ("2026-11-24 04:10", 24, "2026-11-25 02:30", True),
        ("2026-11-24 04:10", 24, "2026-11-25 08:30", True),
        ("2026-11-24 04:10", 24, "2026-11-25 08:31", False),
        ("2026-11-25 02:31", 24, "2026-11-25 03:00", False),
        ("2026-11-24 22:00", 24, "2026-11-25 03:00", True),
        ("2026-11-24 02:31", 48, "2026-11-25 03:00", False),
        ("2026-11-24 02:31", 48, "2026-11-26 03:00", True),
        ("2026-03-28 02:31", 24, "2026-03-29 03:31", True),
        ("2026-10-24 02:31", 24, "2026-10-25 02:45", True),
    ],
)
def test_with_a_time_of_day_backups_begin_then_and_up_to_six_hours_later(
    last: str | None, every: float, now: str, due: bool
) -> None:
    each = plan("web1", moment(last) if last else 0.0, every=every, at="02:30")
    assert names([each], moment(now)) == (["web1"] if due else [])


@pytest.mark.usefixtures("berlin")
def test_the_time_of_day_may_be_before_midnight() -> None:
    each = plan("web1", moment("2026-11-24 00:10"), at="23:00")
    assert names([each], moment("2026-11-24 22:59")) == []
    assert names([each], moment("2026-11-25 01:00")) == ["web1"]


def test_a_verification_that_failed_is_tried_again_the_next_day() -> None:
    week = Plan("web1", "node1", 168, "", 0.0, tried=200 * HOUR)
    assert find_due([week], (), 201 * HOUR) == []
    assert find_due([week], (), 224 * HOUR) == [week]
    often = Plan("web1", "node1", 6, "", 0.0, tried=200 * HOUR)
    assert find_due([often], (), 206 * HOUR) == [often]
