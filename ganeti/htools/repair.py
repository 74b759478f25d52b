"""Tags about automatic repairs, and the repair that an instance needs. Pure.

A repair leaves two tags on its instance: ``pending`` with its jobs, and ``result`` when they have
ended. Both have the type of the repair, an identifier that they share, and a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ganeti.model.repair_tags import PREFIX, TYPES, Type
from ganeti.placement.facts import TURNING, Instance, Mirror


class Result(StrEnum):
    """How a repair ended; ``enoperm``: tags do not allow it."""

    SUCCESS = "success"
    FAILURE = "failure"
    ENOPERM = "enoperm"


@dataclass(frozen=True, slots=True)
class Repair:
    """A repair that was begun, or ended when there is a result."""

    kind: Type
    uuid: str
    time: int
    jobs: tuple[int, ...] = ()
    result: Result | None = None

    @property
    def tag(self) -> str:
        jobs = "+".join(map(str, self.jobs))
        if self.result is None:
            return f"{PREFIX}pending:{self.kind.word}:{self.uuid}:{self.time}:{jobs}"
        return f"{PREFIX}result:{self.kind.word}:{self.uuid}:{self.time}:{self.result}:{jobs}"


def read(tag: str) -> Repair | None:
    """The repair that a tag records; None for other tags, and for those that make no sense."""
    if not tag.startswith(PREFIX):
        return None
    word, *fields = tag.removeprefix(PREFIX).split(":")
    if (word, len(fields)) not in (("pending", 4), ("result", 5)):
        return None
    kind, uuid, time, *rest = fields
    try:
        result = Result(rest[0]) if word == "result" else None
        jobs = tuple(int(job) for job in rest[-1].split("+") if job)
        return Repair(TYPES[kind], uuid, int(time), jobs, result)
    except (KeyError, ValueError):
        return None


def repairs(tags: Iterable[str]) -> list[Repair]:
    """All repairs that tags record, the oldest first."""
    found = [repair for repair in map(read, sorted(tags)) if repair is not None]
    return sorted(found, key=lambda repair: repair.time)


def find_unfinished(found: Sequence[Repair]) -> list[Repair]:
    """Repairs whose end is not on record."""
    ended = {repair.uuid for repair in found if repair.result is not None}
    return [repair for repair in found if repair.result is None and repair.uuid not in ended]


def find_needed_repair(item: Instance, offline: frozenset[str]) -> Type | None:
    """The repair that an instance needs when some nodes are offline; None when it is well.

    Instances on shared storage need none of these: they start on any node.
    """
    if item.forthcoming:
        return None
    primary, secondary = item.primary in offline, item.secondary in offline
    if item.mirror is Mirror.SECONDARY:
        if primary and secondary:
            return Type.REINSTALL
        if primary:
            return Type.FAILOVER
        return Type.FIX_STORAGE if secondary else None
    lost = item.mirror is Mirror.NONE and item.template in TURNING  # volumes of that node
    return Type.REINSTALL if primary and lost else None
