"""The query engine: one request compiled once, run over one snapshot.

The order of a run: rows (looked up by name, found by an index, or all), conditions that need the
configuration only, then one round of live data for the rows that are left, then the whole filter,
then the columns. A query that needs no live data takes no lock and calls no node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypedDict, TypeVar

from ganeti.base.text import nearest
from ganeti.errors import ErrorCode, OpPrereqError, ParameterError, QueryFilterParseError, text
from ganeti.filters import compile, shape, tree
from ganeti.filters.compile import Cell, Column, Operand
from ganeti.filters.patterns import Budget
from ganeti.query import redaction
from ganeti.query.field import UNKNOWN, Context, Field, Kind, describe_unknown, in_order
from ganeti.query.live import NODE_CALLS, Need, Sources
from ganeti.query.registry import KINDS

T = TypeVar("T")

#: Columns of one query.
MAX_FIELDS = 1000
#: Kinds whose objects have an index by name; see :func:`is_quick`.
_QUICK_KINDS = ("instance", "node")
_QUICK_FIELDS = 50


class QueryAnswer(TypedDict):
    """Definitions of the columns, and for each row a list of ``(status, value)``."""

    fields: list[dict[str, str]]
    data: list[list[Cell]]


class FieldsAnswer(TypedDict):
    fields: list[dict[str, str]]


class Query:
    """A request that was checked and can be run.

    Args:
        what: name of a kind, or a kind.
        fields: names of the columns; unknown ones make columns of status 1.
        qfilter: filter in its JSON form, None for everything.
        look_up: whether a filter that only lists names is a look-up: the answer has one row for
            each name, in the order of the names, and a name that does not exist is an error.
        redacted: whether sensitive parameters are hidden, from filters as well.

    Raises:
        ParameterError: unknown kind, a filter on an unknown field or of the wrong type.
        OpPrereqError: the filter is malformed (wrong_input).
    """

    def __init__(
        self,
        what: str | Kind[object],
        fields: Sequence[str],
        qfilter: object = None,
        *,
        look_up: bool = True,
        redacted: bool = False,
    ) -> None:
        self.kind = kind_of(what)
        self.redacted = redacted
        self.columns = [(name, self.kind.find(name)) for name in _check_fields(fields)]
        filter_tree = _filter(qfilter)
        self._operands: dict[str, Field[object]] = {}
        compile.check(filter_tree, self._operand)
        used = [field for _, field in self.columns if field] + list(self._operands.values())
        base = self.kind.base_needs
        self.needs = base.union(*(field.needs for field in used))
        self._names: list[Any] | None = None
        if look_up and self.kind.looks_up:
            self._names = shape.find_pinned_names(filter_tree, self.kind.name_field)
        self._candidates = shape.candidate_values(filter_tree, self.kind.index_fields)
        self._before, self._after = filter_tree, None
        if any(field.needs - base for field in self._operands.values()):
            self._before = shape.relax(
                filter_tree, lambda name: bool(self._operands[name].needs - base)
            )
            self._after = filter_tree

    def _operand(self, name: str) -> Operand:
        field = self._operands.get(name)
        if field is None:
            field = self.kind.find(name)
            if field is None:
                raise ParameterError(
                    f"The filter uses the unknown {self.kind.name} field"
                    f" '{name:.60}'{nearest(name[:60], self.kind.fields)}"
                )
            self._operands[name] = field
        return field.operand

    @property
    def definitions(self) -> list[dict[str, str]]:
        """Definitions of the columns."""
        return [
            field.definition if field else describe_unknown(name) for name, field in self.columns
        ]

    @property
    def asks_nodes(self) -> bool:
        """Whether :meth:`run` calls nodes, and so may take as long as one of them hangs."""
        return not NODE_CALLS.isdisjoint(self.needs)

    def run(self, sources: Sources) -> QueryAnswer:
        """The answer, from one snapshot; blocks only for live data, when it is needed.

        Raises OpPrereqError (unknown_entity) for a name that does not exist in a look-up, and
        ParameterError for a value that does not fit the filter.
        """
        run, rows = self._rows(sources)
        return {"fields": self.definitions, "data": run.cells(rows)}

    def values(self, sources: Sources) -> list[list[object]]:
        """The values alone, None where one has a status other than normal; as :meth:`run`."""
        run, rows = self._rows(sources)
        return run.values(rows)

    def _rows(self, sources: Sources) -> tuple[_Run, Sequence[object]]:
        run = _Run(self, Context(sources, self.needs))
        return run, run.rows(self._names, self._candidates, self._before, self._after)


class _Run:
    """One run of a query; remembers the columns, so that filter and answer share them."""

    def __init__(self, query: Query, ctx: Context) -> None:
        self._query = query
        self._kind = query.kind
        self._ctx = ctx
        self._columns: dict[str, Column[object]] = {}
        self._budget = Budget()

    def rows(
        self,
        names: Sequence[object] | None,
        candidates: set[Any] | None,
        before: tree.Filter | None,
        after: tree.Filter | None,
    ) -> Sequence[object]:
        ctx, kind = self._ctx, self._kind
        self._collect(kind.base_needs, ())
        if names is not None:
            rows = kind.lookup(ctx, names)
        elif candidates is not None:
            rows = self._select(before, kind.candidates(ctx, candidates))
        elif before is None:
            rows = kind.list_all(ctx, {name for name, _field in self._query.columns})
        else:
            rows = self._select(before, kind.rows(ctx))
        needs = ctx.needs - kind.base_needs
        if needs and rows:
            self._collect(needs, rows)
        rows = kind.choose_rows(ctx, rows, names is not None) if rows else rows
        return rows if names is not None else self._select(after, rows)

    def cells(self, rows: Sequence[object]) -> list[list[Cell]]:
        return self._table(self._cells_of, rows)

    def values(self, rows: Sequence[object]) -> list[list[object]]:
        """Like :meth:`cells`, without the status."""
        return self._table(self._values_of, rows)

    def _table(
        self,
        make: Callable[[str, Field[object] | None, Sequence[object]], list[T]],
        rows: Sequence[object],
    ) -> list[list[T]]:
        if not rows or not self._query.columns:
            return [[] for _ in rows]
        columns = [make(name, field, rows) for name, field in self._query.columns]
        return list(map(list, zip(*columns, strict=True)))

    def _cells_of(
        self, name: str, field: Field[object] | None, rows: Sequence[object]
    ) -> list[Cell]:
        if field is None:
            return [UNKNOWN] * len(rows)
        return self._keep_column(field, "cells", rows, lambda: list(map(self._column(name), rows)))

    def _values_of(
        self, name: str, field: Field[object] | None, rows: Sequence[object]
    ) -> list[object]:
        def make() -> list[object]:
            return [value for _status, value in self._cells_of(name, field, rows)]

        return make() if field is None else self._keep_column(field, "values", rows, make)

    def _keep_column(
        self,
        field: Field[object],
        what: str,
        rows: Sequence[object],
        make: Callable[[], list[object]],
    ) -> list[Any]:
        """A column; one of all rows and without live data is kept with the snapshot."""
        if field.needs or rows is not self._kind.snapshot_rows(self._ctx):
            return make()
        what = f"redacted {what}" if self._query.redacted else what
        kept, key = self._ctx.tables.columns, (self._kind.name, field.name, what)
        if key not in kept:
            kept[key] = make()
        return kept[key]

    def _column(self, name: str) -> Column[object]:
        column = self._columns.get(name)
        if column is None:
            field = self._kind.find(name)
            assert field is not None
            column = field.getter(self._ctx)
            if self._query.redacted:
                column = _redact_column(name, column)
            self._columns[name] = column
        return column

    def _select(self, condition: tree.Filter | None, rows: Sequence[object]) -> Sequence[object]:
        if condition is None or not rows:
            return rows
        self._budget.start()
        passes = compile.predicate(condition, self._query._operand, self._column, self._budget)
        return [row for row in rows if passes(row)]

    def _collect(self, needs: frozenset[Need], rows: Sequence[object]) -> None:
        """Get live data; several calls run side by side."""
        if not needs:
            return
        tasks = self._kind.tasks(self._ctx, needs, rows)
        if len(tasks) == 1:
            for need, task in tasks.items():
                self._ctx.live[need] = task()
            return
        with ThreadPoolExecutor(max_workers=max(1, len(tasks))) as pool:
            futures = {need: pool.submit(task) for need, task in tasks.items()}
            for need, future in futures.items():
                self._ctx.live[need] = future.result()


def _filter(wire: object) -> tree.Filter | None:
    try:
        return tree.from_wire(wire)
    except QueryFilterParseError as err:  # a class for texts, not for requests
        raise OpPrereqError(text(err), ErrorCode.INVAL) from err


def _redact_column(name: str, column: Column[object]) -> Column[object]:
    def hide(row: object) -> Cell:
        status, value = column(row)
        return status, redaction.hide(value, name)

    return hide


def _check_fields(fields: object) -> Iterable[str]:
    if not isinstance(fields, list | tuple) or not all(isinstance(name, str) for name in fields):
        raise ParameterError("The fields of a query must be a list of names")
    if len(fields) > MAX_FIELDS:
        raise ParameterError(f"A query may ask for {MAX_FIELDS} fields at most")
    return fields


def kind_of(what: str | Kind[object]) -> Kind[object]:
    """The kind of a name; ParameterError for an unknown one."""
    return what if isinstance(what, Kind) else KINDS.get(what[:60])


def query(
    sources: Sources, what: str, fields: Sequence[str], qfilter: object = None
) -> QueryAnswer:
    """Compile and run one request; see :class:`Query`."""
    return Query(what, fields, qfilter).run(sources)


def is_quick(what: object, fields: object, qfilter: object) -> bool:
    """Whether a query looks one name up in the configuration, which takes some microseconds.

    Takes whatever a client may have sent and never raises; what is wrong is not quick.
    """
    if what not in _QUICK_KINDS or not isinstance(fields, list) or len(fields) > _QUICK_FIELDS:
        return False
    if isinstance(qfilter, list) and len(qfilter) == 2 and qfilter[0] == "|":
        qfilter = qfilter[1]
    if not isinstance(qfilter, list) or len(qfilter) != 3 or qfilter[0] not in ("==", "="):
        return False
    kind = KINDS.get(what)
    if qfilter[1] != kind.name_field:
        return False
    for name in fields:
        field = kind.find(name) if isinstance(name, str) else None
        if field is None or field.needs:
            return False
    return True


def fields_of(what: str | Kind[object], names: Sequence[str] | None = None) -> FieldsAnswer:
    """Definitions of fields: of all in natural order, or of the given names in their order."""
    kind = kind_of(what)
    if not names:
        return {"fields": [field.definition for field in in_order(kind.fields)]}
    found = [(name, kind.find(name)) for name in _check_fields(names)]
    return {
        "fields": [field.definition if field else describe_unknown(name) for name, field in found]
    }
