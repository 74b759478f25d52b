"""In which order instances are started and stopped, and how many at a time. Pure.

An instance with the tag ``ganeti:order:N`` belongs to the order N (0 to 9999), others to 500. Low
orders start first and stop last. Jobs wait for each other in the queue, where nothing waits for
them; of each node only so many run at a time.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

USUAL = 500
#: Jobs on one node that run at a time, unless an option says else.
PARALLEL = 4
#: Jobs of an earlier order that a job waits for at most: the last ones.
MOST = 64
_TAG = re.compile(r"ganeti:order:([0-9]{1,4})")
#: How a job may have ended that others wait for: one that fails holds up nobody.
_ENDED = ("success", "error", "canceled")


class _Tagged(Protocol):
    """An instance, as far as its order depends on it."""

    @property
    def name(self) -> str: ...

    @property
    def tags(self) -> Collection[str]: ...


T = TypeVar("T", bound=_Tagged)


def get_order(tags: Collection[str]) -> int:
    """The order of an instance; the lowest of several."""
    found = (_TAG.fullmatch(tag) for tag in tags)
    return min((int(match[1]) for match in found if match is not None), default=USUAL)


def sort(instances: Sequence[T], *, stop: bool = False) -> list[T]:
    """In the order of their start, or of their stop."""
    return sorted(instances, key=lambda item: (get_order(item.tags), item.name), reverse=stop)


def make_dependencies(orders: Sequence[int]) -> list[list[list[Any]]]:
    """For jobs that are submitted together, sorted by their orders: what each one waits for.

    That is the value of ``depends``: an id relative to the job, and how that job may have ended.
    """
    found: list[list[list[object]]] = []
    begin, earlier = 0, range(0)
    for index, order in enumerate(orders):
        if index and order != orders[index - 1]:
            begin, earlier = index, range(max(begin, index - MOST), index)
        found.append([[other - index, list(_ENDED)] for other in earlier])
    return found


def limit_reason(what: str, node: str, parallel: int) -> str:
    """The text of a reason that lets so many jobs on a node run at a time."""
    return f"rate-limit:{parallel}:{what} on {node}"


def with_dependencies(ops: Sequence[Mapping[str, object]], orders: Sequence[int]) -> list[Any]:
    """Opcodes of one job each, which wait for those of earlier orders."""
    pairs = zip(ops, make_dependencies(orders), strict=True)
    return [{**op, "depends": depends} if depends else op for op, depends in pairs]
