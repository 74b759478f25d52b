"""Asking an allocator: gather what nodes say, run the program on the master, check its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ganeti import constants, errors
from ganeti.base import jsonio
from ganeti.model.config import Config
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops.allocator import answers, gather, request
from ganeti.ops.allocator.request import Json, NewInstance
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls

#: Stands for the allocator that the cluster has by default.
DEFAULT = "."


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
    extra: Mapping[str, object] | None = None,
    config: Config | None = None,
) -> Any:
    """The result that an allocator gives; blocks up to 15 minutes.

    ``template`` tells which storage's free space matters; ``extra`` are options of this request.
    """
    return answers.result(name, run(ctx, name, full(ctx, question, template, config), extra))


def run(ctx: Context, name: str, text: str, extra: Mapping[str, object] | None = None) -> str:
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
    answers = gather.ask_nodes(ctx, template, config)
    return jsonio.dumps({**request.cluster(config, answers), "request": question})
