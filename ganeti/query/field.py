"""Fields and kinds: what can be requested, as data.

A kind of thing (nodes, instances, ...) is a :class:`Kind` with a table of fields. A field has a
name, a title, the kind of its values, a sentence, what it needs besides the configuration, and a
*getter*: a function that is called once per query and returns the column, a function from a row
to ``(status, value)``. What is the same for all rows is worked out in the getter.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from ganeti.errors import ErrorCode, OpPrereqError, ProgrammerError
from ganeti.filters.answer import FieldKind, ResultStatus
from ganeti.filters.compile import Cell, Column, Operand
from ganeti.model.config import Config
from ganeti.query.live import Need, NodeAnswer, Sources
from ganeti.query.tables import Tables, sort_key, tables_of

R = TypeVar("R")
T = TypeVar("T")
Getter: TypeAlias = Callable[["Context"], Column[R]]
Task: TypeAlias = Callable[[], Any]

NOTHING: frozenset[Need] = frozenset()

UNKNOWN: Cell = (ResultStatus.UNKNOWN.value, None)
NODATA: Cell = (ResultStatus.NODATA.value, None)
UNAVAIL: Cell = (ResultStatus.UNAVAIL.value, None)
OFFLINE: Cell = (ResultStatus.OFFLINE.value, None)

_NAME = re.compile(r"[a-z0-9/._]+")
_DOC = re.compile(r"[A-Z][^\n]*[^\n.,;:!?\s]")


class Context:
    """One query: its sources, the snapshot it sees, and the live data once it is there."""

    def __init__(self, sources: Sources, needs: frozenset[Need] = NOTHING) -> None:
        self.sources = sources
        self.needs = needs
        self.config: Config = sources.config
        self.tables: Tables = tables_of(self.config)
        self.live: dict[Need, Any] = {}
        self._shared: dict[Callable[[Context], object], Any] = {}

    def compute_once(self, make: Callable[[Context], T]) -> T:
        """Return the result of ``make``, made once per query, for use in several columns."""
        if make not in self._shared:
            self._shared[make] = make(self)
        made: T = self._shared[make]
        return made


def optional(value: object) -> Cell:
    """A value that an item may lack."""
    return UNAVAIL if value is None else (0, value)


def make_failed_cell(answer: NodeAnswer[object]) -> Cell:
    """The cell for a node whose answer is not OK."""
    return (answer.state.value.value, None)


@dataclass(frozen=True)
class Field(Generic[R]):
    """One column that can be requested."""

    name: str
    title: str
    kind: FieldKind
    doc: str
    getter: Getter[R]
    needs: frozenset[Need] = NOTHING
    #: how conditions compare it; see ``Operand``
    hostname: bool = False
    seconds: bool = False
    numeric_text: bool = False

    def __post_init__(self) -> None:
        problem = ""
        if not _NAME.fullmatch(self.name):
            problem = "name"
        elif not self.title or any(char.isspace() for char in self.title):
            problem = "title"
        elif not _DOC.fullmatch(self.doc):
            problem = "description"
        if problem:
            raise ProgrammerError(f"the field '{self.name}' has an invalid {problem}")

    @cached_property
    def definition(self) -> dict[str, str]:
        """The field as clients see it."""
        return {
            "name": self.name,
            "title": self.title,
            "kind": self.kind.value,
            "doc": self.doc,
        }

    @cached_property
    def operand(self) -> Operand:
        return Operand(self.name, self.kind, self.hostname, self.seconds, self.numeric_text)


def describe_unknown(name: str) -> dict[str, str]:
    """Definition of a field that does not exist."""
    return {
        "name": name,
        "title": name,
        "kind": FieldKind.UNKNOWN.value,
        "doc": "No such field",
    }


class Kind(ABC, Generic[R]):
    """A kind of thing that can be queried; the base of those in ``kinds/``.

    Rows are what the getters' columns take. A subclass says where they come from.
    """

    #: Name on the wire.
    name: ClassVar[str]
    #: Field whose value names a row.
    name_field: ClassVar[str] = "name"
    #: Live data without which there are no rows.
    base_needs: ClassVar[frozenset[Need]] = NOTHING
    #: Fields that an index finds rows by.
    index_fields: ClassVar[frozenset[str]] = frozenset()
    #: A filter that only lists names is a look-up, for which all names must exist.
    looks_up: ClassVar[bool] = True

    def __init__(self) -> None:
        self.fields: dict[str, Field[R]] = {}

    # fields ------------------------------------------------------------------------------

    def add(self, new: Field[R]) -> None:
        if new.name in self.fields:
            raise ProgrammerError(f"the {self.name} field '{new.name}' is defined twice")
        self.fields[new.name] = new

    def field(
        self,
        name: str,
        title: str,
        kind: FieldKind,
        doc: str,
        *,
        needs: Iterable[Need] = (),
        hostname: bool = False,
        seconds: bool = False,
        numeric_text: bool = False,
    ) -> Callable[[Getter[R]], Getter[R]]:
        """Decorator: the function gets the context and returns the column."""

        def register(getter: Getter[R]) -> Getter[R]:
            wants = frozenset(needs)
            self.add(Field(name, title, kind, doc, getter, wants, hostname, seconds, numeric_text))
            return getter

        return register

    def value(
        self, name: str, title: str, kind: FieldKind, doc: str
    ) -> Callable[[Callable[[R], object]], Callable[[R], object]]:
        """Decorator: the function returns the value of a row, None when the row has none."""

        def register(function: Callable[[R], object]) -> Callable[[R], object]:
            def column(row: R) -> Cell:
                got = function(row)
                return UNAVAIL if got is None else (0, got)

            self.add(Field(name, title, kind, doc, lambda _: column))
            return function

        return register

    def attribute(
        self,
        name: str,
        title: str,
        kind: FieldKind,
        doc: str,
        attribute: str,
        *,
        hostname: bool = False,
    ) -> None:
        """A field that is always there: an attribute of the row."""
        get = attrgetter(attribute)

        def column(row: R) -> Cell:
            return (0, get(row))

        self.add(Field(name, title, kind, doc, lambda _: column, hostname=hostname))

    def alias(self, name: str, of: str) -> None:
        """A second, listed name of a field."""
        self.add(replace(self.fields[of], name=name))

    def find(self, name: str) -> Field[R] | None:
        """The field of a name; also for spellings that are accepted but not listed."""
        found = self.fields.get(name)
        if found is None:
            listed = self.fields.get(self.respell(name))
            if listed is not None:
                return replace(listed, name=name)
        return found

    def respell(self, name: str) -> str:
        """The listed name that another spelling stands for."""
        return name

    # rows --------------------------------------------------------------------------------

    @abstractmethod
    def rows(self, ctx: Context) -> Sequence[R]:
        """All rows in natural order; the caller does not change the list."""

    def list_all(self, ctx: Context, fields: Set[str]) -> Sequence[R]:
        """All rows, for a client that asks for these fields of everything."""
        return self.rows(ctx)

    def snapshot_rows(self, ctx: Context) -> Sequence[R] | None:
        """All rows when they are part of the snapshot, the very list; else None."""
        return None

    def lookup(self, ctx: Context, names: Sequence[Any]) -> Sequence[R]:
        """The rows with these names, in this order.

        Raises OpPrereqError (unknown_entity) for a name that does not exist.
        """
        known = {self.row_name(row): row for row in self.rows(ctx)}
        for name in names:
            if name not in known:
                raise OpPrereqError(f"{self.name} '{name}' is not known", ErrorCode.NOENT)
        return [known[name] for name in names]

    def row_name(self, row: R) -> str:
        """Name of a row, for :meth:`lookup`."""
        return str(getattr(row, self.name_field))

    def candidates(self, ctx: Context, values: set[object]) -> Sequence[R]:
        """All rows in which one of ``index_fields`` may equal one of the values, in order."""
        return self.rows(ctx)

    # live data ---------------------------------------------------------------------------

    def tasks(self, ctx: Context, needs: frozenset[Need], rows: Sequence[R]) -> Mapping[Need, Task]:
        """The calls that get the live data for these rows; the engine runs them at once."""
        return {}

    def choose_rows(self, ctx: Context, rows: Sequence[R], named: bool) -> Sequence[R]:
        """The rows once the live data is there; ``named`` when they were requested by name."""
        return rows


def in_order(fields: Mapping[str, Field[R]]) -> list[Field[R]]:
    """All fields in natural order of their names."""
    return [fields[name] for name in sorted(fields, key=sort_key)]
