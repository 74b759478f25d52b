"""Asking the nodes what is free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ganeti import errors
from ganeti.model import node_state
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node
from ganeti.ops.board.node_answers import NO_UNIT, SPINDLES, Answers, NodeFacts
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import InstanceInfo
from ganeti.storage.registry import TEMPLATES, traits_of

#: Type, name and parameters of a storage unit that a node is asked about.
Unit = tuple[str, str, list[Any]]
#: Seconds that nodes get to tell what is free.
PATIENCE = 60.0


def ask_nodes(ctx: Context, template: str = "", config: Config | None = None) -> Answers:
    """Ask the nodes for their facts; those that do not answer are left out, with a warning.

    ``template`` tells which storage matters; without one it is that of the first template that is
    enabled. Blocks for two calls to all nodes that are online, at most :data:`PATIENCE` seconds.
    Never fails for a node. Answers are not older than this call; requests at the same moment share
    them. What is set aside on a node (``hv_state``, ``disk_state``) counts as not there.
    """
    config = config or ctx.config
    cluster = config.cluster
    nodes = [node for node in config.nodes.values() if not node.offline and node.vm_capable]
    hypervisors = list(cluster.enabled_hypervisors)
    units = {node.uuid: _units(config, node, template) for node in nodes}
    asked = [(name, cluster.hvparams.get(name, {})) for name in hypervisors[:1]]
    rpc = ctx.rpc.limit_time(PATIENCE).share_calls()
    arguments: dict[NodeUuid, tuple[Node, tuple[object, ...]]] = {
        node.uuid: (node, (units[node.uuid], asked)) for node in nodes
    }
    infos = rpc.call_each(NodeCalls.node_info, arguments)
    running = rpc.call_many(
        nodes, NodeCalls.all_instances_info, hypervisors, dict(cluster.hvparams)
    )
    found: dict[str, NodeFacts] = {}
    for node in nodes:
        info, runs = infos[node.uuid], running[node.uuid]
        if info.error is not None or runs.error is not None:
            problem = info.error or runs.error
            ctx.warn(f"left out of the choice: {errors.text(problem) if problem else ''}")
            continue
        _boot, rooms, resources = info.get()
        resource = resources[0] if resources else {}
        found[node.uuid] = describe(
            config, node, units[node.uuid], rooms or [], resource, runs.get()
        )
    return Answers(config, found, storage_unit(cluster, template) or NO_UNIT)


def describe(
    config: Config,
    node: Node,
    units: Sequence[Unit],
    rooms: Sequence[Mapping[str, Any]],
    resources: Mapping[str, Any],
    running: Mapping[str, InstanceInfo],
) -> NodeFacts:
    """The resources of a node for instances: its answer, less the resources set aside. Pure."""
    room = {SPINDLES: (0, 0)}
    space = (0, 0)
    for (kind, name, _params), answer in zip(units, rooms):
        room[kind] = (int(answer.get("storage_size") or 0), int(answer.get("storage_free") or 0))
        if kind == "lvm-vg":
            room[kind] = node_state.limit_room(room[kind], config.disk_state(node).get(name, {}))
        if kind != SPINDLES:
            space = room[kind]
    state = config.hv_state(node).get(config.cluster.enabled_hypervisors[0], {})
    has = node_state.limit_resources(resources, state)
    return NodeFacts(has, space, room[SPINDLES], running)


def _units(config: Config, node: Node, template: str) -> list[Unit]:
    """Storage units to ask a node about: the one that matters; spindles if it is exclusive."""
    unit = storage_unit(config.cluster, template)
    if unit is None:
        return []
    kind, name = unit
    exclusive = kind == "lvm-vg" and bool(config.ndparams(node).get("exclusive_storage"))
    found: list[Unit] = [(kind, name, [True] if exclusive else [])]
    if exclusive:
        found.append((SPINDLES, name, [True]))
    return found


def storage_unit(cluster: Cluster, template: str) -> tuple[str, str] | None:
    """Type and name of what a template fills; of the first enabled one without a template."""
    kinds = [template] if template else list(cluster.enabled_disk_templates)
    for kind in kinds:
        if kind in TEMPLATES:
            traits = traits_of(kind)
            checked = traits.space_checked_as
            name = getattr(cluster, traits.directory or "volume_group_name")
            if checked and name:
                return checked, name
    return None
