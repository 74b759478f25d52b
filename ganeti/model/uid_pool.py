"""The pool of user ids for guests: ranges ``(first, last)``. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ganeti import errors

Range = tuple[int, int]
Ranges = tuple[Range, ...]


def _refuse(text: str) -> errors.OpPrereqError:
    return errors.make_invalid_error(text)


def text(ranges: Sequence[Range]) -> str:
    """Ranges as the command line writes them: ``1000-1010, 1020``."""
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def check(ranges: Sequence[Range]) -> Ranges:
    """Sorted ranges.

    Raises:
        OpPrereqError: one ends before it begins, has negative ids, or two overlap.
    """
    result = tuple(sorted((low, high) for low, high in ranges))
    for low, high in result:
        if low < 0 or high < low:
            raise _refuse(f"{low}-{high} is not a range of user ids")
    for before, after in pairwise(result):
        if after[0] <= before[1]:
            raise _refuse(f"the ranges of user ids {text([before])} and {text([after])} overlap")
    return result


def add(pool: Sequence[Range], more: Sequence[Range]) -> Ranges:
    """The pool with further ranges; OpPrereqError when one is in it already."""
    return check([*pool, *more])


def remove(pool: Sequence[Range], gone: Sequence[Range]) -> Ranges:
    """The pool without some ranges, each of which must lie inside one range of the pool.

    Raises:
        OpPrereqError: a range is not in the pool.
    """
    left = list(check(pool))
    for low, high in check(gone):
        outer = next((item for item in left if item[0] <= low and high <= item[1]), None)
        if outer is None:
            raise _refuse(
                f"user ids {text([(low, high)])} are not in the pool, which is"
                f" {text(pool) or 'empty'}"
            )
        left.remove(outer)
        left += [(a, b) for a, b in ((outer[0], low - 1), (high + 1, outer[1])) if a <= b]
    return check(left)
