"""Groups, nodes and instances as LUXI and the remote API give them: flat objects by field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.htools import wire
from ganeti.model import node_state
from ganeti.placement.facts import LOCAL, TURNING, Cluster, Group, Instance, Node

#: Fields of a node and what the same numbers are called in node calls.
_RESOURCES = {
    "mtotal": "memory_total",
    "mnode": "memory_dom0",
    "mfree": "memory_free",
    "ctotal": "cpu_total",
    "cnos": "cpu_dom0",
}


def build(
    groups: Sequence[JsonObject],
    nodes: Sequence[JsonObject],
    instances: Sequence[JsonObject],
    info: JsonObject,
    static_memory: int,
) -> Cluster:
    """The cluster; objects have the names of query fields as keys, None for what is unknown."""
    hypervisor = info.get("default_hypervisor")
    made = [_group(raw) for raw in groups]
    known = tuple(
        _node(_set_aside(raw, info), info.get("master"), hypervisor, static_memory) for raw in nodes
    )
    return Cluster(
        groups=tuple(made),
        nodes=known,
        instances=tuple(_instance(raw) for raw in instances),
        tags=wire.names(info.get("tags"), "cluster, tags"),
        policy=wire.policy(info.get("ipolicy"), "cluster, ipolicy"),
        policies={
            raw["name"]: wire.policy(raw["ipolicy"], f"group {raw['name']}, ipolicy")
            for raw in groups
            if raw.get("ipolicy") is not None
        },
    )


def _group(raw: JsonObject) -> Group:
    where = f"group {raw.get('name') or raw.get('uuid') or '?'}"
    return Group(
        wire.take(raw, "name", str, where),
        wire.take(raw, "uuid", str, where),
        wire.take(raw, "alloc_policy", str, where),
        wire.names(raw.get("tags"), where),
    )


def _set_aside(raw: JsonObject, info: JsonObject) -> JsonObject:
    """A node without the resources that administrators set aside, where the source has these."""
    states = (raw.get("hv_state") or {}).get(info.get("default_hypervisor"), {})
    amounts = {wire_key: wire.amount(raw.get(key)) for key, wire_key in _RESOURCES.items()}
    known = {name: number for name, number in amounts.items() if number is not None}
    limited = node_state.limit_resources(known, states)
    result = {**raw, **{key: limited.get(name) for key, name in _RESOURCES.items()}}
    local = (name for name in info.get("enabled_disk_templates") or () if name in LOCAL)
    if next(local, "") in TURNING:
        groups = (raw.get("disk_state") or {}).get(node_state.VOLUMES, {})
        room = (wire.amount(raw.get("dtotal")) or 0, wire.amount(raw.get("dfree")) or 0)
        room = node_state.limit_room(room, groups.get(info.get("volume_group_name"), {}))
        result["dtotal"], result["dfree"] = room
    return result


def _node(raw: JsonObject, master: object, hypervisor: Any, static_memory: int) -> Node:
    where = f"node {raw.get('name') or '?'}"
    name = wire.take(raw, "name", str, where)
    group = wire.take(raw, "group.uuid", str, where)
    marked = raw.get("offline") or raw.get("drained") or raw.get("vm_capable") is False
    live = [wire.amount(raw.get(key)) for key in ("mtotal", "mnode", "mfree", "ctotal")]
    total, own, free, cpus = live
    spindles = wire.amount(raw.get("ndp/spindle_count"))
    tags = wire.names(raw.get("tags"), where)
    # A node that does not answer is unknown, not empty: nothing goes there.
    if marked or total is None or free is None or cpus is None:
        return Node(name, group, 0, 0, 0, 0, 0, 0, offline=True, tags=tags, master=name == master)
    exclusive = bool(raw.get("ndp/exclusive_storage"))
    speed = raw.get("ndp/cpu_speed")
    disk, spare = wire.amount(raw.get("dtotal")), wire.amount(raw.get("dfree"))
    return Node(
        name=name,
        group=group,
        memory=total,
        node_memory=wire.node_memory(own, hypervisor, static_memory),
        free_memory=free,
        disk=disk or 0,
        free_disk=spare or 0,
        cpus=cpus,
        master=name == master,
        spindles=(wire.amount(raw.get("sptotal")) if exclusive else spindles) or 0,
        tags=tags,
        exclusive_storage=exclusive,
        free_spindles=wire.amount(raw.get("spfree")) or 0,
        node_cpus=wire.amount(raw.get("cnos")) or 0,
        cpu_speed=float(speed) if isinstance(speed, int | float) and speed > 0 else 1.0,
    )


def _instance(raw: JsonObject) -> Instance:
    where = f"instance {raw.get('name') or '?'}"
    secondaries = wire.names(raw.get("snodes"), where)
    sizes = tuple(size for size in map(wire.amount, raw.get("disk.sizes") or ()) if size)
    spindles = [wire.amount(value) for value in raw.get("disk.spindles") or ()]
    template = raw.get("disk_template") or "diskless"
    return Instance(
        name=wire.take(raw, "name", str, where),
        memory=wire.amount(raw.get("be/memory")) or 0,
        disk=sum(sizes) if sizes else wire.amount(raw.get("disk_usage")) or 0,
        vcpus=wire.amount(raw.get("be/vcpus")) or 0,
        status=str(raw.get("status") or "unknown"),
        auto_balance=raw.get("be/auto_balance") is not False,
        primary=raw.get("pnode") or "",
        secondary=secondaries[0] if secondaries else "",
        template=str(template),
        tags=wire.names(raw.get("tags"), where),
        spindle_use=_use_default(wire.amount(raw.get("be/spindle_use")), 1),
        spindles=None if None in spindles or not spindles else sum(filter(None, spindles)),
        forthcoming=bool(raw.get("forthcoming")),
        disks=sizes,
    )


def _use_default(value: int | None, default: int) -> int:
    return default if value is None else value


def flatten(raw: Mapping[str, object]) -> JsonObject:
    """An object of the remote API with the names of query fields."""
    result = dict(raw)
    for parameters, prefix in (("beparams", "be/"), ("ndparams", "ndp/")):
        inner = raw.get(parameters)
        if isinstance(inner, dict):
            result |= {prefix + key: value for key, value in inner.items()}
    return result
