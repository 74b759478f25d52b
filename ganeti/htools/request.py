"""Allocator requests (``iallocator.json``): the cluster in them."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.base import jsonio
from ganeti.base.json_types import JsonObject
from ganeti.htools import wire
from ganeti.htools.wire import WireError
from ganeti.placement.facts import Cluster, Group, Instance, Node


def parse(text: str) -> JsonObject:
    """The request that a text holds; raises :class:`WireError`."""
    try:
        raw = jsonio.loads(text)
    except errors.ParseError as err:
        raise WireError(f"the request is not JSON: {errors.text(err)}") from err
    if not isinstance(raw, dict):
        raise WireError("the request is not an object")
    return raw


def cluster(raw: JsonObject) -> Cluster:
    """The cluster of a request."""
    groups = wire.take(raw, "nodegroups", dict, "request")
    nodes = wire.take(raw, "nodes", dict, "request")
    instances = wire.take(raw, "instances", dict, "request")
    for kind, objects in (("group", groups), ("node", nodes), ("instance", instances)):
        for name, value in objects.items():
            if not isinstance(value, dict):
                raise WireError(f"{kind} {name}: is not an object")
    policy = wire.policy(raw.get("ipolicy"), "ipolicy")
    return Cluster(
        groups=tuple(_group(uuid, value) for uuid, value in groups.items()),
        nodes=tuple(_node(name, value) for name, value in nodes.items()),
        instances=tuple(instance(name, value) for name, value in instances.items()),
        tags=wire.names(raw.get("cluster_tags"), "cluster_tags"),
        policy=policy,
        policies={
            value["name"]: wire.policy(value["ipolicy"], f"group {value['name']}, ipolicy")
            for value in groups.values()
            if value.get("ipolicy") is not None
        },
    )


def _group(uuid: str, raw: JsonObject) -> Group:
    where = f"group {uuid}"
    return Group(
        wire.take(raw, "name", str, where),
        uuid,
        wire.take(raw, "alloc_policy", str, where),
        wire.names(raw.get("tags"), where),
        wire.names(raw.get("networks"), where),
    )


def _node(name: str, raw: JsonObject) -> Node:
    where = f"node {name}"
    group = wire.take(raw, "group", str, where)
    tags = wire.names(raw.get("tags"), where)
    marked = raw.get("offline") or raw.get("drained") or raw.get("vm_capable") is False
    if marked or wire.amount(raw.get("total_memory")) is None:
        drained = bool(raw.get("drained")) and not raw.get("offline")
        return Node(name, group, 0, 0, 0, 0, 0, 0, offline=True, tags=tags, drained=drained)
    parameters: Any = raw.get("ndparams") or {}
    exclusive = bool(parameters.get("exclusive_storage"))
    count = wire.amount(parameters.get("spindle_count"))
    speed = parameters.get("cpu_speed")
    return Node(
        name=name,
        group=group,
        memory=wire.take(raw, "total_memory", int, where),
        node_memory=wire.take(raw, "reserved_memory", int, where),
        free_memory=wire.take(raw, "free_memory", int, where),
        disk=wire.take(raw, "total_disk", int, where),
        free_disk=wire.take(raw, "free_disk", int, where),
        cpus=wire.take(raw, "total_cpus", int, where),
        spindles=(wire.amount(raw.get("total_spindles")) if exclusive else count) or 1,
        tags=tags,
        exclusive_storage=exclusive,
        free_spindles=wire.amount(raw.get("free_spindles")) or 0,
        node_cpus=wire.amount(raw.get("reserved_cpus")) or 0,
        cpu_speed=float(speed) if isinstance(speed, int | float) and speed > 0 else 1.0,
    )


def instance(name: str, raw: JsonObject) -> Instance:
    """An instance of a request: one of the cluster, or the one to place."""
    where = f"instance {name}"
    places = wire.names(raw.get("nodes"), where)
    disks = raw.get("disks") or []
    if not isinstance(disks, list) or not all(isinstance(disk, dict) for disk in disks):
        raise WireError(f"{where}: 'disks' is not a list of objects")
    sizes = tuple(wire.take(disk, "size", int, where) for disk in disks)
    spindles = [wire.amount(disk.get("spindles")) for disk in disks]
    nics = raw.get("nics") or []
    return Instance(
        name=name,
        memory=wire.take(raw, "memory", int, where),
        disk=wire.take(raw, "disk_space_total", int, where),
        vcpus=wire.take(raw, "vcpus", int, where),
        status="running" if raw.get("admin_state", "up") == "up" else "ADMIN_down",
        auto_balance=raw.get("auto_balance") is not False,
        primary=places[0] if places else "",
        secondary=places[1] if len(places) > 1 else "",
        template=wire.take(raw, "disk_template", str, where),
        tags=wire.names(raw.get("tags"), where),
        spindle_use=wire.take(raw, "spindle_use", int, where) if "spindle_use" in raw else 1,
        spindles=None if None in spindles or not spindles else sum(filter(None, spindles)),
        forthcoming=bool(raw.get("forthcoming")),
        disks=sizes,
        nics=len(nics) if isinstance(nics, list) else 1,
    )
