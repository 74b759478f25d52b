"""Node groups. Rows are group objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Cell, Column
from ganeti.model.group import NodeGroup
from ganeti.model.params import fill
from ganeti.query.field import Context, Kind
from ganeti.query.kinds import ndparams, stamps
from ganeti.query.tables import sort_key

TEXT, NUMBER, OTHER = FieldKind.TEXT, FieldKind.NUMBER, FieldKind.OTHER


class GroupKind(Kind[NodeGroup]):
    name = "group"
    index_fields = frozenset({"name", "uuid"})

    def rows(self, ctx: Context) -> Sequence[NodeGroup]:
        return ctx.tables.groups

    def lookup(self, ctx: Context, names: Sequence[Any]) -> Sequence[NodeGroup]:
        found, exact = ctx.tables.group_index.find_one, ctx.config.group
        return [found(name) or exact(name) for name in names]

    def candidates(self, ctx: Context, values: set[object]) -> Sequence[NodeGroup]:
        return ctx.tables.group_index.find(values)


KIND = GroupKind()

stamps.add_fields(KIND, "node group")
KIND.attribute("name", "Group", TEXT, "Name of the node group", "name")
KIND.attribute(
    "custom_ndparams",
    "CustomNDParams",
    OTHER,
    "Node parameters set for this group itself",
    "ndparams",
)
KIND.attribute(
    "custom_beparams",
    "CustomBEParams",
    OTHER,
    "Backend parameters set for this group itself",
    "beparams",
)
KIND.attribute(
    "custom_ipolicy",
    "CustomInstancePolicy",
    OTHER,
    "Instance policy set for this group itself",
    "ipolicy",
)
KIND.attribute(
    "custom_diskparams",
    "CustomDiskParameters",
    OTHER,
    "Disk parameters set for this group itself, by template",
    "diskparams",
)


@KIND.value("alloc_policy", "AllocPolicy", TEXT, "Allocation policy of the group")
def _alloc_policy(group: NodeGroup) -> str:
    return group.alloc_policy.value


@KIND.field("node_cnt", "Nodes", NUMBER, "Number of nodes")
def _node_cnt(ctx: Context) -> Column[NodeGroup]:
    members = ctx.tables.group_members
    return lambda group: (0, len(members[group.uuid]))


@KIND.field("node_list", "NodeList", OTHER, "Names of the nodes")
def _node_list(ctx: Context) -> Column[NodeGroup]:
    members = ctx.tables.group_members
    return lambda group: (0, [node.name for node in members[group.uuid]])


@KIND.field("pinst_cnt", "Instances", NUMBER, "Number of instances with a primary node here")
def _pinst_cnt(ctx: Context) -> Column[NodeGroup]:
    members, instances = ctx.tables.group_members, ctx.config.primaries
    return lambda group: (0, sum(len(instances[node.uuid]) for node in members[group.uuid]))


@KIND.field("pinst_list", "InstanceList", OTHER, "Instances with a primary node here")
def _pinst_list(ctx: Context) -> Column[NodeGroup]:
    members, names = ctx.tables.group_members, ctx.tables.primary_instances

    def column(group: NodeGroup) -> Cell:
        found = [name for node in members[group.uuid] for name in names[node.uuid]]
        return (0, sorted(found, key=sort_key))

    return column


@KIND.field("ipolicy", "InstancePolicy", OTHER, "Instance policy, complete")
def _ipolicy(ctx: Context) -> Column[NodeGroup]:
    filled = ctx.config.ipolicy
    return lambda group: (0, filled(group.uuid))


@KIND.field("diskparams", "DiskParameters", OTHER, "Disk parameters by template, complete")
def _diskparams(ctx: Context) -> Column[NodeGroup]:
    cluster = ctx.config.cluster.diskparams

    def column(group: NodeGroup) -> Cell:
        own = group.diskparams
        templates = dict.fromkeys([*cluster, *own])
        return (0, {name: fill(cluster.get(name, {}), own.get(name, {})) for name in templates})

    return column


def _ndparams_of(ctx: Context) -> Callable[[NodeGroup], Mapping[str, object]]:
    cluster = ctx.config.cluster.ndparams
    return lambda group: fill(cluster, group.ndparams)


@KIND.field("ndparams", "NDParams", OTHER, "All node parameters, complete")
def _ndparams(ctx: Context) -> Column[NodeGroup]:
    filled = _ndparams_of(ctx)
    return lambda group: (0, filled(group))


ndparams.add_fields(KIND, _ndparams_of)
