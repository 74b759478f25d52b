"""Parameter values whose JSON form needs more than a plain type.

A *wire type* is a class with ``from_wire(raw)`` (raises :class:`ValueError` made by
:func:`refuse`), ``to_wire()``, ``notation`` (its name in documentation) and ``shape`` (the plain
type that describes its JSON form). :func:`decode_value` calls them; nothing is registered.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self, TypeVar

import msgspec

from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.opcodes.enums import FinalStatus

_SHOWN_LENGTH = 60

T = TypeVar("T")


def format_refused(raw: object) -> str:
    """A refused value for an error text: short scalars themselves, else their kind."""
    if raw is None:
        return "null"
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, int | float):
        return repr(raw)
    if isinstance(raw, str):
        text = repr(str(raw))
        return text if len(text) <= _SHOWN_LENGTH else f"a text of {len(raw)} characters"
    if isinstance(raw, list | tuple):
        count = {0: "an empty list", 1: "a list of 1 item"}
        return count.get(len(raw), f"a list of {len(raw)} items")
    if isinstance(raw, dict):
        return "an object"
    return f"a {type(raw).__name__}"


def refuse(expected: str, raw: object, at: str = "") -> ValueError:
    """The error for a value that cannot be used; ``at`` is its place inside (``.size``)."""
    place = f" - at `${at}`" if at else ""
    return ValueError(f"expected {expected}, got {format_refused(raw)}{place}")


def decode_value(kind: Any, raw: object) -> object:
    """Hook for msgspec: read a value of a wire type."""
    return kind.from_wire(raw)


def read_part(raw: object, kind: type[T], at: str = "") -> T:
    """Read an inner value; the error of a bad one tells its place, ``at`` in front."""
    try:
        return typed.convert(raw, kind, dec_hook=decode_value)
    except msgspec.ValidationError as err:
        raise ValueError(f"{err} - at `${at}`" if at else str(err)) from err


class Value(ABC):
    """Base of wire types that are compared and shown by their slots."""

    __slots__ = ()

    notation: ClassVar[str]
    shape: ClassVar[Any]

    @classmethod
    @abstractmethod
    def from_wire(cls, raw: object) -> Self:
        """Read the JSON form; raises ValueError when it cannot be used."""

    @abstractmethod
    def to_wire(self) -> object:
        """The JSON form that ``from_wire`` reads back as an equal value."""

    def _parts(self) -> JsonObject:
        names = [name for cls in type(self).__mro__ for name in getattr(cls, "__slots__", ())]
        return {name: getattr(self, name) for name in names}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._parts() == self._parts()

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value!r}" for name, value in self._parts().items())
        return f"{type(self).__name__}({parts})"


class JobDep(Value):
    """Another job that must have ended before this opcode may start.

    ``job`` is a job id, or negative: that many jobs before this one in the same submission.
    ``statuses`` are the accepted ends; none means any end.
    """

    __slots__ = ("job", "statuses")

    notation = "JobDep"
    shape = tuple[int | str, list[FinalStatus]]

    def __init__(self, job: int, statuses: list[FinalStatus] | None = None) -> None:
        self.job = job
        self.statuses = list(statuses or ())

    @classmethod
    def from_wire(cls, raw: object) -> Self:
        """``[job, [status, ...]]``; an absolute job id may also be decimal text."""
        if not (isinstance(raw, list | tuple) and len(raw) == 2):
            raise refuse("a list of a job id and a list of final statuses", raw)
        job = raw[0]
        if isinstance(job, str) and job.isascii() and job.isdigit():
            job = int(job)
        if isinstance(job, bool) or not isinstance(job, int):
            raise refuse("a job id, or a negative number for an earlier job", job, "[0]")
        return cls(job, read_part(raw[1], list[FinalStatus], "[1]"))

    def to_wire(self) -> object:
        return [self.job, [str(status) for status in self.statuses]]
