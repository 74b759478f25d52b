"""The pool of user ids."""

from __future__ import annotations

import pytest

from ganeti import errors
from ganeti.model import uid_pool


def test_add_and_remove() -> None:
    pool = uid_pool.add([(1000, 1010)], [(5, 5)])
    assert pool == ((5, 5), (1000, 1010))
    assert uid_pool.remove(pool, [(1003, 1004)]) == ((5, 5), (1000, 1002), (1005, 1010))
    assert uid_pool.remove(pool, [(1000, 1010), (5, 5)]) == ()
    assert uid_pool.text(pool) == "5, 1000-1010"


@pytest.mark.parametrize("bad", [[(2, 1)], [(-1, 3)], [(1, 5), (5, 9)], [(1, 1), (1, 1)]])
def test_ranges_that_are_none(bad: list[tuple[int, int]]) -> None:
    with pytest.raises(errors.OpPrereqError):
        uid_pool.check(bad)


@pytest.mark.parametrize("gone", [(999, 1000), (1010, 1011), (1, 2)])
def test_only_what_is_there_can_be_removed(gone: tuple[int, int]) -> None:
    with pytest.raises(errors.OpPrereqError, match="not in the pool"):
        uid_pool.remove([(1000, 1010)], [gone])
