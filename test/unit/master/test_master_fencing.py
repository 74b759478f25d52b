"""Which silent nodes are fenced, and when a master trusts nobody's silence."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ganeti.recovery.master import find_silent

LIMIT = 30.0
NOW = 1000.0


def nodes(*silences: float) -> dict[str, float]:
    return {f"n{index}": NOW - silence for index, silence in enumerate(silences)}


def find(*silences: float) -> list[str]:
    heard = nodes(*silences)
    return find_silent(heard, set(heard), LIMIT, NOW)


def test_a_silent_node_is_found_when_its_time_is_over() -> None:
    assert find(0, 0, 29.9) == []
    assert find(0, 0, 30) == ["n2"]


def test_only_nodes_whose_death_can_be_proven_are_found() -> None:
    assert find_silent(nodes(0, 0, 0, 60), set(), LIMIT, NOW) == []


def test_a_master_that_hears_half_of_the_nodes_or_less_finds_nobody() -> None:
    assert find(0, 60) == []
    assert find(0, 60, 60) == []
    assert find(0, 0, 60, 60) == []
    assert find(0, 0, 0, 60, 60) == ["n3", "n4"]


@given(st.lists(st.floats(0, 100), min_size=1, max_size=12))
def test_less_than_half_of_the_nodes_are_fenced_and_none_that_answers(
    silences: list[float],
) -> None:
    found = find(*silences)
    assert 2 * len(found) < len(silences)
    assert all(NOW - nodes(*silences)[uuid] >= LIMIT for uuid in found)
