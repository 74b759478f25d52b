"""Which backups of an instance stay. Pure."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Keep:
    """How many stay: the newest ones, and the newest of each of so many days, weeks, months."""

    last: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0

    def __bool__(self) -> bool:
        return any((self.last, self.daily, self.weekly, self.monthly))


def _day(moment: float) -> object:
    return time.gmtime(moment)[:3]


def _week(moment: float) -> object:
    return time.strftime("%G-%V", time.gmtime(moment))


def _month(moment: float) -> object:
    return time.gmtime(moment)[:2]


def find_removable(times: Sequence[float], keep: Keep) -> list[int]:
    """Indices of the backups that may go, by the times (seconds since 1970, UTC) of all.

    The newest one always stays. Days, weeks (ISO) and months without a backup are not counted.
    """
    newest_first = sorted(range(len(times)), key=lambda index: times[index], reverse=True)
    kept = set(newest_first[: max(1, keep.last)])
    rules: Sequence[tuple[int, Callable[[float], object]]] = (
        (keep.daily, _day),
        (keep.weekly, _week),
        (keep.monthly, _month),
    )
    for count, period in rules:
        seen: set[object] = set()
        for index in newest_first:
            name = period(times[index])
            if name not in seen and len(seen) < count:
                seen.add(name)
                kept.add(index)
    return [index for index in range(len(times)) if index not in kept]
