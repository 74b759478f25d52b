"""OS definitions, as the nodes find them. Rows are one definition on all nodes that answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Column
from ganeti.query.field import Context, Kind, Task
from ganeti.query.kinds import definitions
from ganeti.query.live import Answers, Need
from ganeti.rpc.objects import OsInfo

TEXT, BOOL, OTHER = FieldKind.TEXT, FieldKind.BOOL, FieldKind.OTHER


@dataclass
class Row:
    """All finds of one name: node uuid -> definitions, of which the first is used."""

    name: str
    found: dict[str, list[OsInfo]]

    @cached_property
    def used(self) -> list[OsInfo]:
        """The definition that each node uses; empty when one of them has none that works."""
        first = [infos[0] for infos in self.found.values() if infos and infos[0].valid]
        return first if len(first) == len(self.found) else []

    def common(self, attribute: str) -> list[Any]:
        """Items that a list has in all definitions in use, in the order of the first node."""
        lists = [getattr(info, attribute) for info in self.used]
        return [item for item in lists[0] if all(item in other for other in lists)] if lists else []


class OsKind(Kind[Row]):
    name = "os"
    base_needs = frozenset({Need.OS})

    def rows(self, ctx: Context) -> Sequence[Row]:
        answers: Answers[Sequence[OsInfo]] = ctx.live[Need.OS]
        return [Row(name, found) for name, found in definitions.group_by_name(answers)]

    def tasks(
        self, ctx: Context, needs: frozenset[Need], rows: Sequence[Row]
    ) -> Mapping[Need, Task]:
        nodes = definitions.choose_nodes(ctx)
        return {Need.OS: lambda: ctx.sources.os_diagnose(nodes)}


def diagnose_filter(fields: Sequence[str], names: Sequence[str]) -> list[object] | None:
    """The filter of the opcode that diagnoses OS definitions.

    It hides hidden, blacklisted and invalid ones, unless the field that would tell is requested.
    """
    conditions: list[object] = [["|", *(["==", "name", name] for name in names)]] if names else []
    conditions += [["!", ["?", flag]] for flag in ("hidden", "blacklisted") if flag not in fields]
    if "valid" not in fields:
        conditions.append(["?", "valid"])
    return ["&", *conditions] if conditions else None


KIND = OsKind()

KIND.attribute("name", "Name", TEXT, "Name of the OS definition", "name")


@KIND.value("valid", "Valid", BOOL, "Whether the definition works on all nodes")
def _is_valid(row: Row) -> bool:
    return bool(row.used)


@KIND.value("trusted", "Trusted", BOOL, "Whether the definition may run outside a virtual machine")
def _is_trusted(row: Row) -> bool:
    return all(infos[0].trusted for infos in row.found.values() if infos)


@KIND.value("variants", "Variants", OTHER, "Variants that all nodes have")
def _variants(row: Row) -> list[str]:
    return row.common("variants")


@KIND.value("api_versions", "ApiVersions", OTHER, "Interface versions that all nodes have")
def _api_versions(row: Row) -> list[int]:
    return sorted(row.common("api_versions"))


@KIND.value("parameters", "Parameters", OTHER, "Parameters with descriptions that all nodes have")
def _parameters(row: Row) -> list[list[str]]:
    return [list(pair) for pair in row.common("parameters")]


@KIND.value("hypervisors", "Hypervisors", OTHER, "The only ones it is made for; empty for all")
def _hypervisors(row: Row) -> list[str]:
    limits = [info.hypervisors for info in row.used if info.hypervisors]
    return [name for name in limits[0] if all(name in other for other in limits)] if limits else []


@KIND.value("node_status", "NodeStatus", OTHER, "What was found, by identity of the node")
def _node_status(row: Row) -> dict[str, list[list[object]]]:
    return {
        uuid: [
            [
                info.path,
                info.valid,
                info.diagnose,
                list(info.variants),
                [list(pair) for pair in info.parameters],
                list(info.api_versions),
                info.trusted,
            ]
            for info in infos
        ]
        for uuid, infos in row.found.items()
    }


@KIND.field("hidden", "Hidden", BOOL, "Whether lists leave it out")
def _make_hidden_column(ctx: Context) -> Column[Row]:
    names = ctx.config.cluster.hidden_os
    return lambda row: (0, row.name in names)


@KIND.field("blacklisted", "Blacklisted", BOOL, "Whether new instances may not use it")
def _make_blacklisted_column(ctx: Context) -> Column[Row]:
    names = ctx.config.cluster.blacklisted_os
    return lambda row: (0, row.name in names)


def _expand_variants(table: Mapping[str, object], name: str) -> JsonObject:
    """Entries of an OS definition and of its variants (``debian``, ``debian+minimal``)."""
    return {key: value for key, value in table.items() if key.partition("+")[0] == name}


@KIND.field(
    "os_hvp",
    "OsHypervisorParams",
    OTHER,
    "Hypervisor parameters of the cluster for it and its variants",
)
def _os_hvp(ctx: Context) -> Column[Row]:
    table = ctx.config.cluster.os_hvp
    return lambda row: (0, _expand_variants(table, row.name))


@KIND.field("osparams", "OsParameters", OTHER, "Parameters of the cluster for it and its variants")
def _osparams(ctx: Context) -> Column[Row]:
    table = ctx.config.cluster.osparams
    return lambda row: (0, _expand_variants(table, row.name))
