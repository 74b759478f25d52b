"""Base of collectors, each of which measures one thing on this node and reports it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import ClassVar

from ganeti import errors
from ganeti.base.clock import SYSTEM, Clock, nanoseconds
from ganeti.base.json_types import JsonObject
from ganeti.mond.cluster import ClusterFacts
from ganeti.paths import Paths

#: Marks a collector that comes with this software.
BUILT_IN = "B"


class Kind(IntEnum):
    """Numbers, or a judgement with a status block."""

    PERFORMANCE = 0
    STATUS = 1


class Code(IntEnum):
    """How well something is."""

    OK = 0
    REPAIRING = 1
    UNKNOWN = 2
    BAD = 4


def status(code: Code, message: str = "") -> JsonObject:
    """The status block of a report, or of a part of it."""
    return {"code": int(code), "message": message}


def find_worst(blocks: Iterable[JsonObject]) -> JsonObject:
    """The status of a whole by those of its parts."""
    found = list(blocks)
    code = max((int(block["code"]) for block in found), default=int(Code.OK))
    texts = dict.fromkeys(block["message"] for block in found if block["message"])
    return {"code": code, "message": "; ".join(texts)}


class NothingMeasured(errors.GenericError):
    """A collector has nothing to report, now or on this node; the text says why."""


@dataclass(frozen=True)
class Node:
    """The node as collectors see it."""

    paths: Paths
    facts: ClusterFacts
    clock: Clock = SYSTEM
    #: where the kernel tells about processors and disks
    proc: Path = field(default=Path("/proc"))


class Collector(ABC):
    """Reports one thing. :meth:`data` may be called by several threads."""

    name: ClassVar[str]
    #: None for the category ``default``
    category: ClassVar[str | None] = None
    kind: ClassVar[Kind] = Kind.PERFORMANCE
    format_version: ClassVar[int] = 1

    def __init__(self, node: Node) -> None:
        self._node = node

    def is_useful(self) -> bool:
        """Whether there is something of its kind on this node."""
        return True

    @abstractmethod
    def data(self) -> object:
        """The data of the report; blocks as long as the tools that it runs.

        Raises:
            GanetiError: there is nothing to report; the text says why.
            OSError: a file of the kernel cannot be read.
        """

    @property
    def path(self) -> str:
        """Its name in URLs."""
        return f"{self.category or 'default'}/{self.name}"

    def report(self) -> JsonObject:
        """The whole report; raises as :meth:`data`."""
        return {
            "name": self.name,
            "version": BUILT_IN,
            "format_version": self.format_version,
            "timestamp": nanoseconds(self._node.clock.now()),
            "category": self.category,
            "kind": int(self.kind),
            "data": self.data(),
        }


class SamplingCollector(Collector):
    """A collector that needs measurements at intervals."""

    @abstractmethod
    def sample(self) -> None:
        """Take one measurement; called by one thread, raises as :meth:`data`."""
