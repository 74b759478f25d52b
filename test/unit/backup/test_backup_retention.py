"""Which backups stay."""

from __future__ import annotations

import calendar

from hypothesis import given
from hypothesis import strategies as st

from ganeti.backup.retention import Keep, find_removable


def at(text: str) -> float:
    year, month, day, hour = map(int, text.replace("T", "-").split("-"))
    return float(calendar.timegm((year, month, day, hour, 0, 0)))


def list_kept(times: list[str], keep: Keep) -> list[str]:
    gone = find_removable([at(each) for each in times], keep)
    return [each for index, each in enumerate(times) if index not in gone]


def test_the_newest_ones_stay() -> None:
    times = ["2026-01-01T01", "2026-01-02T01", "2026-01-03T01"]
    assert list_kept(times, Keep(last=2)) == times[1:]


def test_the_newest_one_always_stays() -> None:
    assert list_kept(["2026-01-01T01", "2026-01-02T01"], Keep()) == ["2026-01-02T01"]


def test_of_each_day_the_newest_stays() -> None:
    times = ["2026-01-01T01", "2026-01-01T23", "2026-01-02T05", "2026-01-02T06"]
    assert list_kept(times, Keep(daily=2)) == ["2026-01-01T23", "2026-01-02T06"]


def test_days_without_a_backup_do_not_count() -> None:
    times = ["2026-01-01T01", "2026-02-01T01"]
    assert list_kept(times, Keep(daily=2)) == times


def test_weeks_begin_on_monday_and_cross_the_year() -> None:
    times = ["2025-12-28T10", "2025-12-29T10", "2026-01-04T10", "2026-01-05T10"]
    assert list_kept(times, Keep(weekly=3)) == ["2025-12-28T10", "2026-01-04T10", "2026-01-05T10"]


def test_rules_add_up() -> None:
    times = ["2025-11-30T10", "2025-12-31T10", "2026-01-30T10", "2026-01-31T10", "2026-01-31T11"]
    wanted = Keep(last=2, monthly=3)
    assert list_kept(times, wanted) == [times[0], times[1], times[3], times[4]]


@given(
    st.lists(st.floats(0, 4e9), unique=True, max_size=30),
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(0, 4),
)
def test_pruning_again_removes_nothing_more(
    times: list[float], last: int, daily: int, weekly: int, monthly: int
) -> None:
    keep = Keep(last, daily, weekly, monthly)
    gone = find_removable(times, keep)
    left = [each for index, each in enumerate(times) if index not in gone]
    assert find_removable(left, keep) == []
    assert not times or max(times) in left
