"""Providers of external storage, as the nodes find them. Rows are one provider on all nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Cell, Column
from ganeti.model.ids import NodeUuid
from ganeti.query.field import Context, Kind, Task
from ganeti.query.kinds import definitions
from ganeti.query.live import Answers, Need
from ganeti.rpc.objects import ExtStorageInfo

OTHER = FieldKind.OTHER


@dataclass(frozen=True)
class Row:
    """All finds of one name: node uuid -> providers, of which the first is used."""

    name: str
    found: dict[str, list[ExtStorageInfo]]

    def works_on(self, node_uuid: NodeUuid) -> bool:
        infos = self.found.get(node_uuid) or []
        return bool(infos) and infos[0].valid


class ExtStorageKind(Kind[Row]):
    name = "extstorage"
    base_needs = frozenset({Need.EXTSTORAGE})

    def rows(self, ctx: Context) -> Sequence[Row]:
        answers: Answers[Sequence[ExtStorageInfo]] = ctx.live[Need.EXTSTORAGE]
        return [Row(name, found) for name, found in definitions.group_by_name(answers)]

    def tasks(
        self, ctx: Context, needs: frozenset[Need], rows: Sequence[Row]
    ) -> Mapping[Need, Task]:
        nodes = definitions.choose_nodes(ctx)
        return {Need.EXTSTORAGE: lambda: ctx.sources.extstorage_diagnose(nodes)}


KIND = ExtStorageKind()

KIND.attribute("name", "Name", FieldKind.TEXT, "Name of the provider", "name")


@KIND.value("node_status", "NodeStatus", OTHER, "What was found, by identity of the node")
def _node_status(row: Row) -> dict[str, list[list[object]]]:
    return {
        uuid: [
            [info.path, info.valid, info.diagnose, [list(pair) for pair in info.parameters]]
            for info in infos
        ]
        for uuid, infos in row.found.items()
    }


@KIND.field(
    "nodegroup_status", "NodegroupStatus", OTHER, "Whether it works on all nodes of each group"
)
def _nodegroup_status(ctx: Context) -> Column[Row]:
    members, names = ctx.tables.group_members, ctx.tables.group_names

    def column(row: Row) -> Cell:
        status: dict[str, dict[str, bool]] = {}
        for uuid, name in names.items():
            asked = [node for node in members[uuid] if node.uuid in row.found]
            works = bool(asked) and all(row.works_on(node.uuid) for node in asked)
            status[name] = {"valid": works}
        return (0, status)

    return column


@KIND.value("parameters", "Parameters", OTHER, "Parameters with descriptions that all nodes have")
def _parameters(row: Row) -> list[list[str]]:
    lists = [[list(pair) for pair in infos[0].parameters] for infos in row.found.values() if infos]
    return [pair for pair in lists[0] if all(pair in other for other in lists)] if lists else []
