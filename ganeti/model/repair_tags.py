"""Tags about automatic repairs of instances. Pure.

``ganeti:watcher:autorepair:TYPE`` on an instance, its group or the cluster (the first that has one
counts) allows repairs up to that type; ``...:suspend[:TIME]`` on any of them stops all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

PREFIX = "ganeti:watcher:autorepair:"


class Type(IntEnum):
    """Repairs, from the least to the most that the users of an instance notice."""

    FIX_STORAGE = 0
    MIGRATE = 1
    FAILOVER = 2
    REINSTALL = 3

    @property
    def word(self) -> str:
        return self.name.lower().replace("_", "-")


TYPES = {kind.word: kind for kind in Type}


def is_suspended(tags: Iterable[str], now: float) -> bool:
    """Whether an object says that nothing below it is repaired now.

    A time that cannot be read suspends for good.
    """
    for tag in tags:
        word, colon, until = tag.partition(f"{PREFIX}suspend")[2].partition(":")
        if not tag.startswith(f"{PREFIX}suspend") or word:
            continue
        if not colon or not until.isdigit() or int(until) > now:
            return True
    return False


def find_allowed(levels: Sequence[Iterable[str]]) -> Type | None:
    """The most that may be done: what the first of the objects with such a tag says.

    Of several tags of one object, the least counts.
    """
    for tags in levels:
        words = [tag.removeprefix(PREFIX) for tag in select(tags)]
        kinds = [TYPES[word] for word in words if word in TYPES]
        if kinds:
            return min(kinds)
    return None


def select(tags: Iterable[str]) -> list[str]:
    """The tags about automatic repairs."""
    return [tag for tag in tags if tag.startswith(PREFIX)]
