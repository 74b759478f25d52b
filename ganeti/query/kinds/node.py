"""Nodes. Rows are node objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Cell, Column
from ganeti.model.cluster import Cluster
from ganeti.model.node import Node
from ganeti.model.node_state import VOLUMES
from ganeti.query.field import NODATA, OFFLINE, UNAVAIL, Context, Kind, Task, make_failed_cell
from ganeti.query.kinds import ndparams, node_reserved, stamps
from ganeti.query.live import NO_ANSWER, Need, NodeInfo, NodeRequest, NodeState, StorageUnit
from ganeti.storage.registry import traits_of, volume_templates

TEXT, BOOL, NUMBER = FieldKind.TEXT, FieldKind.BOOL, FieldKind.NUMBER
UNIT, OTHER = FieldKind.UNIT, FieldKind.OTHER


class NodeKind(Kind[Node]):
    name = "node"
    index_fields = frozenset({"name", "uuid"})

    def rows(self, ctx: Context) -> Sequence[Node]:
        return ctx.tables.nodes

    def snapshot_rows(self, ctx: Context) -> Sequence[Node]:
        return ctx.tables.nodes

    def lookup(self, ctx: Context, names: Sequence[Any]) -> Sequence[Node]:
        found, exact = ctx.tables.node_index.find_one, ctx.config.node
        return [found(name) or exact(name) for name in names]

    def candidates(self, ctx: Context, values: set[object]) -> Sequence[Node]:
        return ctx.tables.node_index.find(values)

    def tasks(
        self, ctx: Context, needs: frozenset[Need], rows: Sequence[Node]
    ) -> Mapping[Need, Task]:
        requests = {
            node.uuid: _request(ctx, needs, node)
            for node in rows
            if not node.offline and (node.vm_capable or Need.NODE in needs)
        }
        return {Need.NODE: lambda: ctx.sources.node_info(requests) if requests else {}}


def _request(ctx: Context, needs: frozenset[Need], node: Node) -> NodeRequest:
    if not node.vm_capable:
        return NodeRequest()
    cluster = ctx.config.cluster
    units: list[StorageUnit] = []
    for need, unit in (
        (Need.NODE_STORAGE, default_storage(cluster)),
        (Need.NODE_SPINDLES, _spindle_storage(cluster)),
    ):
        if need in needs and unit is not None:
            kind, name = unit
            exclusive = bool(ctx.config.ndparams(node).get("exclusive_storage"))
            units.append((kind, name, [exclusive] if kind.startswith("lvm") else []))
    wanted = Need.NODE_HYPERVISOR in needs
    return NodeRequest(tuple(units), cluster.enabled_hypervisors[:1] if wanted else ())


def default_storage(cluster: Cluster) -> tuple[str, str] | None:
    """Type and name of the storage whose size is shown: that of the first fitting template."""
    for template in cluster.enabled_disk_templates:
        traits = traits_of(template)
        kind = traits.space_checked_as
        name = getattr(cluster, traits.directory or "volume_group_name")
        if kind and name and not traits.shared:
            return kind, name
    return None


def _spindle_storage(cluster: Cluster) -> tuple[str, str] | None:
    if cluster.volume_group_name and volume_templates() & set(cluster.enabled_disk_templates):
        return "lvm-pv", cluster.volume_group_name
    return None


KIND = NodeKind()


# from the node object ------------------------------------------------------------------------

stamps.add_fields(KIND, "node")
node_reserved.add_fields(KIND)
KIND.attribute("name", "Node", TEXT, "Name of the node", "name", hostname=True)
KIND.attribute("drained", "Drained", BOOL, "Whether the node gets no new instances", "drained")
KIND.attribute("offline", "Offline", BOOL, "Whether the node is marked offline", "offline")
KIND.attribute(
    "master_candidate",
    "MasterC",
    BOOL,
    "Whether the node keeps a copy of the configuration",
    "master_candidate",
)
KIND.attribute(
    "master_capable",
    "MasterCapable",
    BOOL,
    "Whether the node may become a master candidate",
    "master_capable",
)
KIND.attribute("vm_capable", "VMCapable", BOOL, "Whether the node can run instances", "vm_capable")
KIND.attribute("pip", "PrimaryIP", TEXT, "Primary address of the node", "primary_ip")
KIND.attribute("sip", "SecondaryIP", TEXT, "Address for replication traffic", "secondary_ip")
KIND.attribute(
    "custom_ndparams",
    "CustomNodeParameters",
    OTHER,
    "Node parameters set for this node itself",
    "ndparams",
)


# from the rest of the configuration ----------------------------------------------------------


@KIND.field("hv_state", "HypervisorState", OTHER, "What is set aside of each hypervisor")
def _hv_state(ctx: Context) -> Column[Node]:
    def column(node: Node) -> Cell:
        found = ctx.config.hv_state(node)
        return (0, found) if found else UNAVAIL

    return column


@KIND.field("disk_state", "DiskState", OTHER, "What is set aside of volume groups")
def _disk_state(ctx: Context) -> Column[Node]:
    def column(node: Node) -> Cell:
        found = ctx.config.disk_state(node)
        return (0, {VOLUMES: found}) if found else UNAVAIL

    return column


@KIND.field("master", "IsMaster", BOOL, "Whether the node is the master")
def _master(ctx: Context) -> Column[Node]:
    master = ctx.config.cluster.master_node
    return lambda node: (0, node.uuid == master)


@KIND.field(
    "role",
    "Role",
    TEXT,
    "Role as a letter: M master, C candidate, R regular, D drained, O offline",
)
def _role(ctx: Context) -> Column[Node]:
    master = ctx.config.cluster.master_node
    return lambda node: (0, node.role(master).value)


@KIND.field(
    "maintenance",
    "Maintenance",
    BOOL,
    "Whether the node is in maintenance, until gnt-node maintenance off",
)
def _maintenance(_ctx: Context) -> Column[Node]:
    return lambda node: (0, node.maintenance is not None)


@KIND.field("powered", "Powered", BOOL, "Whether the node is thought to be switched on")
def _powered(ctx: Context) -> Column[Node]:
    config = ctx.config

    def column(node: Node) -> Cell:
        return (0, node.powered) if config.ndparams(node).get("oob_program") else UNAVAIL

    return column


@KIND.field("group", "Group", TEXT, "Name of the node group")
def _group(ctx: Context) -> Column[Node]:
    names = ctx.tables.group_names

    def column(node: Node) -> Cell:
        name = names.get(node.group)
        return UNAVAIL if name is None else (0, name)

    return column


KIND.attribute("group.uuid", "GroupUUID", TEXT, "Identity of the node group", "group")


@KIND.field("pinst_cnt", "Pinst", NUMBER, "Number of instances with this node as primary")
def _pinst_cnt(ctx: Context) -> Column[Node]:
    instances = ctx.config.primaries
    return lambda node: (0, len(instances[node.uuid]))


@KIND.field("sinst_cnt", "Sinst", NUMBER, "Number of instances with this node as secondary")
def _sinst_cnt(ctx: Context) -> Column[Node]:
    instances = ctx.tables.secondary_instances
    return lambda node: (0, len(instances[node.uuid]))


@KIND.field("pinst_list", "PriInstances", OTHER, "Instances with this node as primary")
def _pinst_list(ctx: Context) -> Column[Node]:
    names = ctx.tables.primary_instances
    return lambda node: (0, names[node.uuid])


@KIND.field("sinst_list", "SecInstances", OTHER, "Instances with this node as secondary")
def _sinst_list(ctx: Context) -> Column[Node]:
    names = ctx.tables.secondary_instances
    return lambda node: (0, names[node.uuid])


def _ndparams_of(ctx: Context) -> Callable[[Node], Mapping[str, object]]:
    return ctx.config.ndparams


@KIND.field("ndparams", "NodeParameters", OTHER, "All node parameters, complete")
def _ndparams(ctx: Context) -> Column[Node]:
    filled = ctx.config.ndparams
    return lambda node: (0, filled(node))


ndparams.add_fields(KIND, _ndparams_of)


# from the node itself ------------------------------------------------------------------------

Extract = Callable[[NodeInfo], Any]


def _make_live_column(ctx: Context, extract: Extract, *, any_node: bool = False) -> Column[Node]:
    """A column of the nodes' answers; ``any_node``: also for nodes without instances."""
    answers = ctx.live[Need.NODE]

    def column(node: Node) -> Cell:
        if node.offline:
            return OFFLINE
        if not (any_node or node.vm_capable):
            return UNAVAIL
        answer = answers.get(node.uuid, NO_ANSWER)
        if answer.state is not NodeState.OK:
            return make_failed_cell(answer)
        value = extract(answer.payload)
        return NODATA if value is None else (0, value)

    return column


@KIND.field("bootid", "BootID", TEXT, "Random text that changes at each boot", needs=[Need.NODE])
def _bootid(ctx: Context) -> Column[Node]:
    return _make_live_column(ctx, lambda info: info[0], any_node=True)


def _hypervisor_field(name: str, title: str, kind: FieldKind, doc: str, key: str) -> None:
    def extract(info: NodeInfo) -> object:
        return info[2][0].get(key) if info[2] else None

    KIND.field(name, title, kind, doc, needs=[Need.NODE_HYPERVISOR])(
        lambda ctx: _make_live_column(ctx, extract)
    )


_hypervisor_field("mtotal", "MTotal", UNIT, "Memory of the node", "memory_total")
_hypervisor_field("mfree", "MFree", UNIT, "Memory that new instances could use", "memory_free")
_hypervisor_field("mnode", "MNode", UNIT, "Memory that the node uses for itself", "memory_dom0")
_hypervisor_field("ctotal", "CTotal", NUMBER, "Number of logical processors", "cpu_total")
_hypervisor_field("cnodes", "CNodes", NUMBER, "Number of NUMA domains", "cpu_nodes")
_hypervisor_field("csockets", "CSockets", NUMBER, "Number of processor sockets", "cpu_sockets")
_hypervisor_field(
    "cnos", "CNOs", NUMBER, "Number of logical processors for the node itself", "cpu_dom0"
)


def _storage_field(
    name: str,
    title: str,
    kind: FieldKind,
    doc: str,
    need: Need,
    unit: Callable[[Cluster], tuple[str, str] | None],
    key: str,
) -> None:
    def getter(ctx: Context) -> Column[Node]:
        found = unit(ctx.config.cluster)
        wanted = found[0] if found else ""

        def extract(info: NodeInfo) -> object:
            units: Iterable[Mapping[str, object]] = info[1] or ()
            return next((each.get(key) for each in units if each.get("type") == wanted), None)

        return _make_live_column(ctx, extract)

    KIND.field(name, title, kind, doc, needs=[need])(getter)


for _name, _title, _doc, _key in (
    ("dtotal", "DTotal", "Size of the default storage", "storage_size"),
    ("dfree", "DFree", "Space left in the default storage", "storage_free"),
):
    _storage_field(_name, _title, UNIT, _doc, Need.NODE_STORAGE, default_storage, _key)
for _name, _title, _doc, _key in (
    ("sptotal", "SpTotal", "Number of spindles in the volume group", "storage_size"),
    ("spfree", "SpFree", "Number of spindles that no instance uses", "storage_free"),
):
    _storage_field(_name, _title, NUMBER, _doc, Need.NODE_SPINDLES, _spindle_storage, _key)
