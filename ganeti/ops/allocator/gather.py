"""Asking the nodes what is free."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config
from ganeti.model.names import NodeUuid
from ganeti.model.node import Node
from ganeti.ops.board.node_answers import NO_UNIT, SPINDLES, Answers, NodeFacts
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls
from ganeti.storage.registry import TEMPLATES, traits_of

#: Seconds that nodes get to tell what is free.
PATIENCE = 60.0


def ask_nodes(ctx: Context, template: str = "", config: Config | None = None) -> Answers:
    """What the nodes say now; those that do not answer are left out, with a warning.

    ``template`` tells which storage matters; without one it is that of the first template that is
    enabled. Blocks for two calls to all nodes that are online, at most :data:`PATIENCE` seconds.
    Never fails for a node. Answers are not older than this call; requests at the same moment share
    them.
    """
    config = config or ctx.config
    cluster = config.cluster
    nodes = [node for node in config.nodes.values() if not node.offline and node.vm_capable]
    hypervisors = list(cluster.enabled_hypervisors)
    units = {node.uuid: _units(config, node, template) for node in nodes}
    asked = [(name, cluster.hvparams.get(name, {})) for name in hypervisors[:1]]
    rpc = ctx.rpc.limit_time(PATIENCE).share_calls()
    arguments: dict[NodeUuid, tuple[Node, tuple[Any, ...]]] = {
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
        told = {
            kind: (int(room.get("storage_size") or 0), int(room.get("storage_free") or 0))
            for (kind, _name, _params), room in zip(units[node.uuid], rooms or [])
        }
        spindles = told.pop(SPINDLES, (0, 0))
        space = next(iter(told.values()), (0, 0))
        found[node.uuid] = NodeFacts(resources[0] if resources else {}, space, spindles, runs.get())
    return Answers(config, found, storage_unit(cluster, template) or NO_UNIT)


def _units(config: Config, node: Node, template: str) -> list[tuple[str, str, list[Any]]]:
    """What to ask a node about: the storage that matters, and its spindles if it is exclusive."""
    unit = storage_unit(config.cluster, template)
    if unit is None:
        return []
    kind, name = unit
    exclusive = kind == "lvm-vg" and bool(config.ndparams(node).get("exclusive_storage"))
    found: list[tuple[str, str, list[Any]]] = [(kind, name, [True] if exclusive else [])]
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
