"""Instances. Rows are instance objects; fields of disks, NICs and parameters have own modules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Cell, Column
from ganeti.model.enums import AdminState
from ganeti.model.ids import GroupUuid
from ganeti.model.instance import Instance
from ganeti.query.field import UNAVAIL, Context, Kind, Task
from ganeti.query.kinds import (
    instance_backup,
    instance_disks,
    instance_live,
    instance_nics,
    instance_params,
    instance_snapshots,
    stamps,
)
from ganeti.query.live import Need

TEXT, BOOL, OTHER = FieldKind.TEXT, FieldKind.BOOL, FieldKind.OTHER

#: Fields that htools of all versions ask for, and no other program all at once.
_HTOOLS_FIELDS = frozenset(
    {"be/auto_balance", "be/memory", "be/vcpus", "disk_usage", "pnode", "snodes", "status", "tags"}
)

_INDEXED = re.compile(r"(nic|disk)([0-9]+)\.([a-z.]+)")


class InstanceKind(Kind[Instance]):
    name = "instance"
    index_fields = frozenset({"name", "uuid"})

    def rows(self, ctx: Context) -> Sequence[Instance]:
        return ctx.tables.instances

    def list_all(self, ctx: Context, fields: Set[str]) -> Sequence[Instance]:
        """Without reservations that have no node, when htools ask: they load all or nothing."""
        rows, nodes = self.rows(ctx), ctx.config.nodes
        if not fields >= _HTOOLS_FIELDS or all(row.primary_node in nodes for row in rows):
            return rows
        return [row for row in rows if row.primary_node in nodes]

    def snapshot_rows(self, ctx: Context) -> Sequence[Instance]:
        return ctx.tables.instances

    def lookup(self, ctx: Context, names: Sequence[Any]) -> Sequence[Instance]:
        found, exact = ctx.tables.instance_index.find_one, ctx.config.instance
        return [found(name) or exact(name) for name in names]

    def candidates(self, ctx: Context, values: set[object]) -> Sequence[Instance]:
        return ctx.tables.instance_index.find(values)

    def tasks(
        self, ctx: Context, needs: frozenset[Need], rows: Sequence[Instance]
    ) -> Mapping[Need, Task]:
        return instance_live.tasks(ctx, needs, rows)

    def respell(self, name: str) -> str:
        """``hvparam/x``, ``beparam/x``, ``nic0.x`` and ``disk0.x`` of the first designs."""
        for old, new in (("hvparam/", "hv/"), ("beparam/", "be/")):
            if name.startswith(old):
                return new + name.removeprefix(old)
        found = _INDEXED.fullmatch(name)
        return f"{found[1]}.{found[3]}/{found[2]}" if found else name


KIND = InstanceKind()

stamps.add_fields(KIND, "instance")
KIND.attribute(
    "name",
    "Instance",
    TEXT,
    "Name of the instance; of a reservation without a name its identity",
    "handle",
    hostname=True,
)
KIND.attribute("os", "OS", TEXT, "OS definition with its variant", "os")
KIND.attribute("disks_active", "DisksActive", BOOL, "Whether the disks are in use", "disks_active")


@KIND.value("hypervisor", "Hypervisor", TEXT, "Hypervisor that runs the instance")
def _hypervisor(instance: Instance) -> str | None:
    return None if instance.hypervisor is None else instance.hypervisor.value


@KIND.value("admin_state", "InstanceState", TEXT, "Wanted state: up, down or offline")
def _admin_state(instance: Instance) -> str:
    return instance.admin_state.value


@KIND.value("admin_state_source", "InstanceStateSource", TEXT, "Who set the wanted state")
def _admin_state_source(instance: Instance) -> str:
    return instance.admin_state_source.value


@KIND.value("admin_up", "Autostart", BOOL, "Whether the instance is wanted to run")
def _admin_up(instance: Instance) -> bool:
    return instance.admin_state is AdminState.UP


@KIND.value("forthcoming", "Forthcoming", BOOL, "Whether the instance is only reserved so far")
def _forthcoming(instance: Instance) -> bool:
    return bool(instance.forthcoming)


@KIND.value("owner", "Owner", TEXT, "For whom a reservation is made")
def _owner(instance: Instance) -> str:
    return "" if instance.reservation is None else instance.reservation.owner or ""


@KIND.value("expires", "Expires", FieldKind.TIMESTAMP, "When a reservation expires")
def _expires(instance: Instance) -> float | None:
    return None if instance.reservation is None else instance.reservation.expires


@KIND.value("reserved_for", "ReservedFor", TEXT, "What a reservation is for")
def _format_reserved_for(instance: Instance) -> str:
    return "" if instance.reservation is None else instance.reservation.reason or ""


@KIND.value("network_port", "Network_port", OTHER, "TCP port of the graphical console")
def _network_port(instance: Instance) -> int | None:
    return instance.network_port


# nodes ---------------------------------------------------------------------------------------


@KIND.field("pnode", "Primary_node", TEXT, "Name of the primary node", hostname=True)
def _pnode(ctx: Context) -> Column[Instance]:
    names = ctx.tables.node_names

    def column(instance: Instance) -> Cell:
        name = names.get(instance.primary_node)
        return UNAVAIL if name is None else (0, name)

    return column


@KIND.field("pnode.group", "PrimaryNodeGroup", TEXT, "Name of the primary node's group")
def _pnode_group(ctx: Context) -> Column[Instance]:
    nodes, names = ctx.config.nodes, ctx.tables.group_names

    def column(instance: Instance) -> Cell:
        node = nodes.get(instance.primary_node)
        return UNAVAIL if node is None else (0, names.get(node.group, node.group))

    return column


@KIND.field(
    "pnode.group.uuid", "PrimaryNodeGroupUUID", TEXT, "Identity of the primary node's group"
)
def _pnode_group_uuid(ctx: Context) -> Column[Instance]:
    nodes = ctx.config.nodes

    def column(instance: Instance) -> Cell:
        node = nodes.get(instance.primary_node)
        return UNAVAIL if node is None else (0, node.group)

    return column


@KIND.field("image", "Image", TEXT, "Image that it was made from; the UUID of one that is gone")
def _image(ctx: Context) -> Column[Instance]:
    images = ctx.config.images

    def column(instance: Instance) -> Cell:
        if instance.image is None:
            return UNAVAIL
        return (0, images[instance.image].name if instance.image in images else instance.image)

    return column


@KIND.field("cloud_init.id", "CloudInitId", TEXT, "Identity that cloud-init tells the guest")
def _cloud_init_id(ctx: Context) -> Column[Instance]:
    def column(instance: Instance) -> Cell:
        data = instance.cloud_init
        return UNAVAIL if data is None else (0, data.make_instance_id(instance.uuid))

    return column


@KIND.field("cloud_init.keys", "CloudInitKeys", OTHER, "SSH keys that cloud-init tells the guest")
def _cloud_init_keys(ctx: Context) -> Column[Instance]:
    return lambda instance: (0, list(instance.cloud_init.ssh_keys) if instance.cloud_init else [])


@KIND.field("cloud_init.private", "CloudInitPrivate", OTHER, "What else cloud-init tells, by name")
def _cloud_init_private(ctx: Context) -> Column[Instance]:
    return lambda instance: (0, sorted(instance.cloud_init.private) if instance.cloud_init else [])


@KIND.field("snodes", "Secondary_Nodes", OTHER, "Names of the secondary nodes")
def _snodes(ctx: Context) -> Column[Instance]:
    names, secondaries = ctx.tables.node_names, ctx.tables.secondary_nodes
    return lambda instance: (0, [names.get(uuid, uuid) for uuid in secondaries[instance.uuid]])


@KIND.field("snodes.group", "SecondaryNodesGroups", OTHER, "Groups of the secondary nodes")
def _snodes_group(ctx: Context) -> Column[Instance]:
    names, groups = ctx.tables.group_names, ctx.compute_once(_secondary_groups)
    return lambda instance: (0, [names.get(uuid, uuid) for uuid in groups[instance.uuid]])


@KIND.field(
    "snodes.group.uuid",
    "SecondaryNodesGroupsUUID",
    OTHER,
    "Identities of the groups of the secondary nodes",
)
def _snodes_group_uuid(ctx: Context) -> Column[Instance]:
    groups = ctx.compute_once(_secondary_groups)
    return lambda instance: (0, groups[instance.uuid])


def _secondary_groups(ctx: Context) -> dict[str, list[GroupUuid]]:
    """Instance uuid -> group of each secondary node, in the order of the nodes."""
    nodes = ctx.config.nodes
    return {
        uuid: [nodes[node].group for node in found if node in nodes]
        for uuid, found in ctx.tables.secondary_nodes.items()
    }


instance_params.add_fields(KIND)
instance_backup.add_fields(KIND)
instance_disks.add_fields(KIND)
instance_snapshots.add_fields(KIND)
instance_nics.add_fields(KIND)
instance_live.add_fields(KIND)

for _alias, _of in (
    ("vcpus", "be/vcpus"),
    ("be/memory", "be/maxmem"),
    ("sda_size", "disk.size/0"),
    ("sdb_size", "disk.size/1"),
    ("ip", "nic.ip/0"),
    ("mac", "nic.mac/0"),
    ("bridge", "nic.bridge/0"),
    ("nic_mode", "nic.mode/0"),
    ("nic_link", "nic.link/0"),
    ("nic_network", "nic.network/0"),
):
    KIND.alias(_alias, _of)
