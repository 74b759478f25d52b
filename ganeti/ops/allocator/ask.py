"""Asking an allocator: gather what nodes say, run the program on the master, check its answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ganeti import constants, errors
from ganeti.base import jsonio
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config
from ganeti.model.instance import Instance
from ganeti.model.names import NodeUuid
from ganeti.model.node import Node
from ganeti.ops.allocator import answers, request
from ganeti.ops.allocator.request import Json, NewInstance, NodeFacts
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls
from ganeti.storage import held
from ganeti.storage.registry import TEMPLATES, traits_of

#: Stands for the allocator that the cluster has by default.
DEFAULT = "."
#: Storage type of physical volumes, which are counted.
_SPINDLES = "lvm-pv"
#: Seconds that nodes get to tell what is free.
PATIENCE = 60.0


def chosen(ctx: Context, given: str | None, instead: str) -> str:
    """Name of the allocator to ask; ``instead`` is what else the user could do.

    Raises:
        OpPrereqError: none was given, and the cluster has no default.
    """
    if given and given != DEFAULT:
        return given
    default = ctx.config.cluster.default_iallocator
    if not default:
        raise errors.invalid(
            f"no allocator was named and the cluster has no default one; {instead}, name an"
            " allocator with --iallocator, or set a default with gnt-cluster modify"
            f" --default-iallocator={constants.DEFAULT_ALLOCATORS[-1]}"
        )
    return default


def relocate(ctx: Context, name: str, instance: Instance) -> Node:
    """A node of the same data for an instance instead of its primary one.

    Raises:
        OpPrereqError: there is none.
        OpExecError: the allocator cannot be used.
    """
    config = ctx.config
    leave = [config.nodes[instance.primary_node].name]
    question = request.relocate(config, instance, leave)
    found = ask(ctx, name, question, template=config.disk_template(instance))
    [node] = answers.nodes(config, name, found, 1)
    if node.uuid == instance.primary_node:
        raise errors.OpExecError(
            f"allocator '{name}' names {node.name}, the node that {instance.name} is to leave"
        )
    ctx.log(f"Selected node for instance {instance.name} via iallocator {name}: {node.name}")
    return node


def place(
    ctx: Context,
    name: str,
    new: NewInstance,
    restrict_to: Sequence[str] | None = None,
    *,
    config: Config | None = None,
) -> list[Node]:
    """Nodes for a new instance, the primary one first; see :func:`relocate` for errors.

    ``config`` is what the allocator is told instead of the newest configuration.
    """
    question = request.allocate(new, restrict_to)
    found = ask(ctx, name, question, template=new.template, config=config)
    nodes = answers.nodes(ctx.config, name, found, new.nodes)
    names = ", ".join(node.name for node in nodes)
    ctx.log(f"Selected nodes for instance {new.name} via iallocator {name}: {names}")
    return nodes


def place_many(
    ctx: Context, name: str, new: Sequence[NewInstance]
) -> tuple[dict[str, list[Node]], dict[str, str]]:
    """Nodes by instance, and the instances that have no place with the reason; OpExecError."""
    template = new[0].template if new else ""
    found = ask(ctx, name, request.multi_allocate(new), template=template)
    return answers.places(ctx.config, name, found, {item.name: item.nodes for item in new})


def moves(ctx: Context, name: str, question: Json, *, soft_errors: bool = False) -> answers.Moves:
    """Moves for node-evacuate and change-group; see :func:`relocate` for errors."""
    extra = {"ignore-soft-errors": None} if soft_errors else {}
    return answers.moves(name, ask(ctx, name, question, extra=extra))


def ask(
    ctx: Context,
    name: str,
    question: Json,
    *,
    template: str = "",
    extra: dict[str, Any] | None = None,
    config: Config | None = None,
) -> Any:
    """The result that an allocator gives; blocks up to 15 minutes.

    ``template`` tells which storage's free space matters; ``extra`` are options of this request.
    """
    return answers.result(name, run(ctx, name, full(ctx, question, template, config), extra))


def run(ctx: Context, name: str, text: str, extra: dict[str, Any] | None = None) -> str:
    """Run an allocator on the master; returns what it wrote.

    Raises:
        OpExecError: it is not there, failed, or took too long.
    """
    params = {**ctx.config.cluster.default_iallocator_params, **(extra or {})}
    try:
        return ctx.rpc.one(ctx.config.master, NodeCalls.iallocator_runner, name, text, params)
    except errors.RpcError:
        raise
    except errors.GanetiError as err:
        raise errors.OpExecError(f"allocator '{name}' failed: {errors.text(err)}") from err


def full(ctx: Context, question: Json, template: str = "", config: Config | None = None) -> str:
    """The JSON text for an allocator: the cluster as it is now, and the question."""
    config = config or ctx.config
    facts = _facts(ctx, config, template)
    return jsonio.dumps({**request.cluster(config, facts), "request": question})


def _facts(ctx: Context, config: Config, template: str) -> dict[str, NodeFacts]:
    """What the nodes say, by uuid; those that do not answer are left out."""
    cluster = config.cluster
    nodes = [node for node in config.nodes.values() if not node.offline and node.vm_capable]
    hypervisors = list(cluster.enabled_hypervisors)
    units = {node.uuid: _units(config, node, template) for node in nodes}
    asked = [(name, cluster.hvparams.get(name, {})) for name in hypervisors[:1]]
    rpc = ctx.rpc.within(PATIENCE)
    arguments: dict[NodeUuid, tuple[Node, tuple[Any, ...]]] = {
        node.uuid: (node, (units[node.uuid], asked)) for node in nodes
    }
    infos = rpc.each(NodeCalls.node_info, arguments)
    running = rpc.many(nodes, NodeCalls.all_instances_info, hypervisors, dict(cluster.hvparams))
    found: dict[str, NodeFacts] = {}
    for node in nodes:
        info, runs = infos[node.uuid], running[node.uuid]
        if info.error is not None or runs.error is not None:
            problem = info.error or runs.error
            ctx.warn(f"left out of the choice: {errors.text(problem) if problem else ''}")
            continue
        _boot, rooms, resources = info.get()
        free: dict[str, tuple[int, int]] = {}
        for (kind, name, _params), room in zip(units[node.uuid], rooms or []):
            kept = held.space(config, node.uuid, (kind, name)).amount
            left = max(0, int(room.get("storage_free") or 0) - kept)
            free[_SPINDLES if kind == _SPINDLES else ""] = (
                int(room.get("storage_size") or 0),
                left,
            )
        found[node.uuid] = NodeFacts(
            resources[0] if resources else {},
            free.get("", (0, 0)),
            free.get(_SPINDLES, (0, 0)),
            runs.get(),
        )
    return found


def _units(config: Config, node: Node, template: str) -> list[tuple[str, str, list[Any]]]:
    """What to ask a node about: the storage that matters, and its spindles if it is exclusive."""
    unit = storage_unit(config.cluster, template)
    if unit is None:
        return []
    kind, name = unit
    exclusive = kind == "lvm-vg" and bool(config.ndparams(node).get("exclusive_storage"))
    found: list[tuple[str, str, list[Any]]] = [(kind, name, [True] if exclusive else [])]
    if exclusive:
        found.append((_SPINDLES, name, [True]))
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
