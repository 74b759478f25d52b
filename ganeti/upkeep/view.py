"""The cluster as the watcher sees it: two queries, then data without behaviour."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ganeti.luxi.client import Client
from ganeti.model.enums import AdminState, DiskTemplate, InstanceStatus
from ganeti.model.ids import GroupUuid, InstanceUuid

_INSTANCE = (
    "uuid",
    "name",
    "status",
    "admin_state",
    "disks_active",
    "pnode",
    "snodes",
    "disk_template",
    "tags",
)
_NODE = ("name", "group.uuid", "group", "offline", "bootid")


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance as it should be and as it is."""

    uuid: InstanceUuid
    name: str
    status: InstanceStatus
    admin_state: AdminState
    disks_active: bool
    primary: str
    secondaries: tuple[str, ...]
    template: str
    tags: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.primary, *self.secondaries)


@dataclass(frozen=True, slots=True)
class Group:
    """A node group and the instances whose primary node is in it."""

    uuid: GroupUuid
    name: str
    instances: tuple[Instance, ...]
    #: node -> random text that changes at each boot; None for a node that does not answer
    boots: Mapping[str, str | None]
    #: nodes that an administrator has marked offline
    offline: frozenset[str] = frozenset()

    @property
    def has_verifiable_disks(self) -> bool:
        """Whether there are disks that a node can be asked about; providers answer for theirs."""
        no_answer = (DiskTemplate.EXT.value, DiskTemplate.DISKLESS.value)
        return any(item.disks_active and item.template not in no_answer for item in self.instances)

    def all_answer(self, instance: Instance) -> bool:
        """Whether its nodes in the group answer; without one its disks cannot be complete."""
        return not any(self._is_silent(name) for name in instance.nodes)

    def waits_for(self, instance: Instance) -> list[str]:
        """Its nodes that must answer before it can start; one that is marked offline need not."""
        names = (name for name in instance.nodes if name not in self.offline)
        return [name for name in names if self._is_silent(name)]

    def _is_silent(self, name: str) -> bool:
        return self.boots.get(name, "of another group") is None


@dataclass(frozen=True, slots=True)
class _Node:
    group: GroupUuid
    group_name: str
    offline: bool
    boot: str | None


def load(client: Client, only: Collection[str] | None = None) -> list[Group]:
    """All node groups with nodes, by name; asks all nodes for live data, through the master.

    With ``only`` these instances and their nodes are all that is loaded.

    Raises:
        GanetiError: the master does not answer.
    """
    wanted: list[object] = ["!", ["?", "forthcoming"]]
    if only is not None:
        wanted = ["&", wanted, _any_of(only)]
    rows = _values(client, "instance", _INSTANCE, wanted)
    found_instances = [item for item in map(_instance, rows) if item is not None]
    some = None
    if only is not None:
        if not found_instances:
            return []
        some = _any_of({name for item in found_instances for name in item.nodes})
    nodes = {
        str(name): _Node(GroupUuid(group), str(group_name), bool(offline), boot or None)
        for name, group, group_name, offline, boot in _values(client, "node", _NODE, some)
    }
    instances: dict[GroupUuid, list[Instance]] = {}
    for item in found_instances:
        if item.primary in nodes:
            instances.setdefault(nodes[item.primary].group, []).append(item)
    groups: dict[GroupUuid, Group] = {}
    for node in nodes.values():
        if node.group not in groups:
            here = {name: other for name, other in nodes.items() if other.group == node.group}
            boots = {name: other.boot for name, other in here.items()}
            offline = frozenset(name for name, other in here.items() if other.offline)
            found = sorted(instances.get(node.group, ()), key=lambda item: item.name)
            groups[node.group] = Group(node.group, node.group_name, tuple(found), boots, offline)
    return sorted(groups.values(), key=lambda group: group.name)


def _any_of(names: Collection[str]) -> list[object]:
    return ["|", *(["=", "name", name] for name in sorted(names))]


def _values(
    client: Client, what: str, fields: Sequence[str], qfilter: object
) -> list[tuple[Any, ...]]:
    """Rows of values; None where there is none, or the node does not answer."""
    found = client.query(what, list(fields), qfilter)
    return [tuple(value if status == 0 else None for status, value in row) for row in found.data]


def _instance(row: tuple[Any, ...]) -> Instance | None:
    uuid, name, status, admin_state, active, primary, secondaries, template, tags = row
    if status is None or not primary:
        return None
    return Instance(
        uuid=uuid,
        name=name,
        status=InstanceStatus(status),
        admin_state=AdminState(admin_state),
        disks_active=bool(active),
        primary=primary,
        secondaries=tuple(secondaries or ()),
        template=template or "",
        tags=tuple(tags or ()),
    )
