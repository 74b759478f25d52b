"""Text for people, and the order they expect."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from ganeti.base import text

names = st.text("ab019.-²٣", max_size=8) | st.text(max_size=8)


def test_numbers_inside_names_count_by_value() -> None:
    shuffled = ["node10", "node2", "node1", "a", "node", "node2.b", "node02", "", "10", "9"]
    assert text.natural_sorted(shuffled) == [
        "",
        "9",
        "10",
        "a",
        "node",
        "node1",
        "node02",
        "node2",
        "node2.b",
        "node10",
    ]


@given(names, names)
@example("a²", "a2")
@example("٣", "3")
@example("1" * 5000, "2" * 5000)
def test_the_order_is_total_and_tells_all_names_apart(one: str, other: str) -> None:
    first, second = text.natural_key(one), text.natural_key(other)
    assert (first < second) or (second < first) or one == other
    assert text.natural_sorted([one, other]) == text.natural_sorted([other, one])


@given(st.text("ab.", max_size=4), st.integers(0), st.integers(0), st.text("ab.", max_size=4))
def test_only_the_value_of_a_number_counts(front: str, one: int, other: int, back: str) -> None:
    below = text.natural_key(f"{front}{one}{back}") < text.natural_key(f"{front}{other}{back}")
    assert below == (one < other)


@given(st.lists(names, max_size=8))
def test_sorting_keeps_all_names(some: list[str]) -> None:
    assert sorted(text.natural_sorted(some)) == sorted(some)


def test_a_close_name_is_suggested() -> None:
    assert text.nearest("node11", ["web", "node1"]) == " (did you mean node1?)"
    assert text.nearest("zzz", ["web", "node1"]) == ""
    assert text.nearest("x", []) == ""


def test_counting_words() -> None:
    assert [text.plural(n, "disk") for n in (0, 1, 2)] == ["0 disks", "1 disk", "2 disks"]


@given(st.lists(st.sampled_from("abc"), max_size=20), st.integers(1, 12))
def test_long_lists_are_cut_and_the_rest_is_counted(items: list[str], limit: int) -> None:
    shown = text.join_names(items, limit)
    found = re.fullmatch(r"(.*?)(?: and (\d+) more)?", shown)
    assert found is not None
    listed = [item for item in found[1].split(", ") if item]
    assert listed == items[:limit]
    assert len(listed) + int(found[2] or 0) == len(items)


def test_the_beginning_of_a_name_or_its_first_label_is_a_hint() -> None:
    fields = ["minmem", "be/minmem", "memory", "oper_ram"]
    assert text.nearest("mem", fields) == " (did you mean memory?)"
    assert text.nearest("mem", ["be/minmem", "be/memory"]) == " (did you mean be/memory?)"
    hosts = ["web1.example.com", "db1.example.com"]
    assert text.nearest("wbe1", hosts) == " (did you mean web1.example.com?)"
    assert text.nearest("db1.exmaple.com", hosts) == " (did you mean db1.example.com?)"
