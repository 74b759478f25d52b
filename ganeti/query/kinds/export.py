"""Exports of instances on nodes. Rows are pairs of a node and the name of an export.

A node without exports, or one that did not answer, is one row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Cell, Column
from ganeti.model.node import Node
from ganeti.query.field import NODATA, OFFLINE, Context, Kind, Task, make_failed_cell
from ganeti.query.live import NO_ANSWER, Need, NodeState
from ganeti.query.tables import sort_key


class Row(NamedTuple):
    node: Node
    export: str | None = None


class ExportKind(Kind[Row]):
    name = "export"
    name_field = "node"
    index_fields = frozenset({"node"})

    def rows(self, ctx: Context) -> Sequence[Row]:
        return [Row(node) for node in ctx.tables.nodes]

    def lookup(self, ctx: Context, names: Sequence[Any]) -> Sequence[Row]:
        found, exact = ctx.tables.node_index.find_one, ctx.config.node
        return [Row(found(name) or exact(name)) for name in names]

    def candidates(self, ctx: Context, values: set[object]) -> Sequence[Row]:
        return [Row(node) for node in ctx.tables.node_index.find(values)]

    def tasks(
        self, ctx: Context, needs: frozenset[Need], rows: Sequence[Row]
    ) -> Mapping[Need, Task]:
        nodes = [row.node for row in rows if not row.node.offline]
        return {Need.EXPORTS: lambda: ctx.sources.exports(nodes) if nodes else {}}

    def choose_rows(self, ctx: Context, rows: Sequence[Row], named: bool) -> Sequence[Row]:
        answers = ctx.live.get(Need.EXPORTS)
        if answers is None:
            return rows
        found: list[Row] = []
        for row in rows:
            names = answers.get(row.node.uuid, NO_ANSWER).payload
            exports = [Row(row.node, name) for name in sorted(names or (), key=sort_key)]
            found.extend(exports or [row])
        return found


KIND = ExportKind()

KIND.attribute(
    "node", "Node", FieldKind.TEXT, "Node that holds the export", "node.name", hostname=True
)


@KIND.field(
    "export", "Export", FieldKind.TEXT, "Name of the exported instance", needs=[Need.EXPORTS]
)
def _export(ctx: Context) -> Column[Row]:
    answers = ctx.live[Need.EXPORTS]

    def column(row: Row) -> Cell:
        if row.node.offline:
            return OFFLINE
        answer = answers.get(row.node.uuid, NO_ANSWER)
        if answer.state is not NodeState.OK:
            return make_failed_cell(answer)
        return NODATA if row.export is None else (0, row.export)

    return column
