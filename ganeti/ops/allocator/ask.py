"""Asking an allocator: the built-in one, or a program that is run on the master.

The built-in allocator is imported at first use, as it loads numpy.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence

from ganeti import constants, errors
from ganeti.base import jsonio, process, programs
from ganeti.base.json_types import JsonObject
from ganeti.config.changes import Draft
from ganeti.model.config import Config
from ganeti.model.ids import GroupUuid, InstanceUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops.allocator import answers, gather, request
from ganeti.ops.allocator.request import NewInstance
from ganeti.ops.board.claims import Claim
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls

#: Stands for the allocator that the cluster has by default.
DEFAULT = "."
#: Seconds that the program of the built-in allocator gets.
PROGRAM_TIME = 120.0


def choose_allocator(ctx: Context, given: str | None, instead: str) -> str:
    """Name of the allocator to ask; ``instead`` is what else the user could do.

    Raises:
        OpPrereqError: none was given, and the cluster has no default.
    """
    if given and given != DEFAULT:
        return given
    default = ctx.config.cluster.default_iallocator
    if not default:
        raise errors.make_invalid_error(
            f"no allocator was named and the cluster has no default one; {instead}, name an"
            " allocator with --iallocator, or set a default with gnt-cluster modify"
            f" --default-iallocator={constants.BUILT_IN_ALLOCATOR}"
        )
    return default


def is_built_in(ctx: Context, name: str) -> bool:
    """Whether an allocator is the one inside: a program of that name takes its place."""
    if name != constants.BUILT_IN_ALLOCATOR:
        return False
    return programs.find(name, ctx.paths.iallocator_search_path) is None


# questions -------------------------------------------------------------------------------------


def relocate(ctx: Context, name: str, instance: Instance) -> Node:
    """A node of the same data for an instance instead of its primary one.

    Raises:
        OpPrereqError: there is none.
        OpExecError: the allocator cannot be used.
    """
    primary = ctx.config.nodes[instance.primary_node]
    node = _choose_other(ctx, name, instance, [primary], ctx.config.disk_template(instance))
    if node.uuid == instance.primary_node:
        raise errors.OpExecError(
            f"allocator '{name}' names {node.name}, the node that {instance.name} is to leave"
        )
    ctx.log(f"Selected node for instance {instance.name} via iallocator {name}: {node.name}")
    return node


def replace_secondary(ctx: Context, name: str, instance: Instance, template: str) -> Node:
    """A node for the mirrored disks instead of the secondary one; see :func:`relocate`."""
    leave = [ctx.config.nodes[uuid] for uuid in ctx.config.secondary_nodes(instance)]
    return _choose_other(ctx, name, instance, leave, template)


def _choose_other(
    ctx: Context, name: str, instance: Instance, leave: Sequence[Node], template: str
) -> Node:
    if is_built_in(ctx, name):
        from ganeti.ops.allocator import builtin

        return builtin.choose_other_node(ctx, instance, template)
    question = request.relocate(ctx.config, instance, [node.name for node in leave])
    found = ask(ctx, name, question, template=template)
    [node] = answers.nodes(ctx.config, name, found, 1)
    return node


def place(
    ctx: Context,
    name: str,
    new: NewInstance,
    restrict_to: Sequence[str] | None = None,
    *,
    without: InstanceUuid | None = None,
) -> list[Node]:
    """Nodes for a new instance, the primary one first; see :func:`relocate` for errors.

    ``without`` is the uuid of an instance that does not count, as it will be elsewhere.
    """
    if is_built_in(ctx, name):
        from ganeti.ops.allocator import builtin

        handle = ctx.config.instances[without].handle if without else ""
        nodes = builtin.place(ctx, new, restrict_to, handle)
    else:
        question = request.allocate(new, restrict_to)
        with ctx.boards.program_decision():
            config = remove_instance(ctx.config, without) if without else None
            found = ask(ctx, name, question, template=new.template, config=config)
            nodes = answers.nodes(ctx.config, name, found, new.nodes)
            ctx.boards.claim(ctx.job.job_id, [_make_claim(new, nodes)])
    names = ", ".join(node.name for node in nodes)
    ctx.log(f"Selected nodes for instance {new.name} via iallocator {name}: {names}")
    return nodes


def remove_instance(config: Config, uuid: InstanceUuid) -> Config:
    """The configuration as if an instance did not exist."""
    draft = Draft(config, config.data.mtime)
    instance = config.instances[uuid]
    for disk in config.disks_of(instance):
        draft.delete(disk)
    draft.delete(instance)
    return draft.result()


def place_many(
    ctx: Context, name: str, new: Sequence[NewInstance]
) -> tuple[dict[str, list[Node]], dict[str, answers.Refused]]:
    """Nodes by instance, and the instances that have no place with the reason; OpExecError."""
    if is_built_in(ctx, name):
        from ganeti.ops.allocator import builtin

        placed, missing = builtin.place_all(ctx, new)
        return placed, {
            handle: answers.Refused(reason.text, reason.data())
            for handle, reason in missing.items()
        }
    template = new[0].template if new else ""
    with ctx.boards.program_decision():
        found = ask(ctx, name, request.multi_allocate(new), template=template)
        wanted = {item.name: item.nodes for item in new}
        nodes, refused = answers.places(ctx.config, name, found, wanted)
        claims = [_make_claim(item, nodes[item.name]) for item in new if item.name in nodes]
        ctx.boards.claim(ctx.job.job_id, claims)
    return nodes, refused


def _make_claim(new: NewInstance, nodes: Sequence[Node]) -> Claim:
    """Make the claim of a new instance on the nodes that a program chose."""
    names = tuple(node.name for node in nodes)
    return Claim(new.name, names, (new.place_on(names),))


def evacuate(
    ctx: Context,
    name: str,
    instances: Sequence[Instance],
    mode: str,
    leave: Node,
    *,
    soft_errors: bool = False,
) -> answers.Moves:
    """Moves of instances off a node; see :func:`relocate` for errors."""
    if is_built_in(ctx, name):
        from ganeti.ops.allocator import builtin

        return builtin.evacuate(ctx, instances, mode, [leave], soft_errors=soft_errors)
    question = request.node_evacuate([item.name for item in instances], mode)
    extra = {"ignore-soft-errors": None} if soft_errors else {}
    return answers.moves(name, ask(ctx, name, question, extra=extra))


def change_group(
    ctx: Context, name: str, instances: Sequence[Instance], groups: Sequence[GroupUuid]
) -> answers.Moves:
    """Moves of instances to other groups; see :func:`relocate` for errors."""
    if is_built_in(ctx, name):
        from ganeti.ops.allocator import builtin

        return builtin.change_group(ctx, instances, groups)
    question = request.change_group([item.name for item in instances], groups)
    return answers.moves(name, ask(ctx, name, question))


# programs --------------------------------------------------------------------------------------


def ask(
    ctx: Context,
    name: str,
    question: JsonObject,
    *,
    template: str = "",
    extra: Mapping[str, object] | None = None,
    config: Config | None = None,
) -> object:
    """The result that an allocator gives; blocks up to 15 minutes.

    ``template`` tells which storage's free space matters; ``extra`` are options of this request.
    """
    return answers.result(
        name, run(ctx, name, format_request(ctx, question, template, config), extra)
    )


def run(ctx: Context, name: str, text: str, extra: Mapping[str, object] | None = None) -> str:
    """Run an allocator on the master; returns what it wrote.

    Raises:
        OpExecError: it is not there, failed, or took too long.
    """
    params = {**ctx.config.cluster.default_iallocator_params, **(extra or {})}
    if is_built_in(ctx, name):
        return _run_program(ctx, text, params)
    try:
        return ctx.rpc.call_one(ctx.config.master, NodeCalls.iallocator_runner, name, text, params)
    except errors.RpcError:
        raise
    except errors.GanetiError as err:
        raise errors.OpExecError(f"allocator '{name}' failed: {errors.text(err)}") from err


def _run_program(ctx: Context, text: str, params: Mapping[str, object]) -> str:
    """Return the output of the program ``hail``, which decides as the built-in allocator does."""
    options = [f"--{key}" if value is None else f"--{key}={value}" for key, value in params.items()]
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=ctx.paths.run) as file:
        file.write(text)
        file.flush()
        argv = [sys.executable, "-m", "ganeti.htools.hail", *options, file.name]
        result = process.run(argv, timeout=PROGRAM_TIME)
    if not result.ok:
        raise errors.OpExecError(f"allocator 'hail' failed: {result.explain()}")
    return result.stdout


def format_request(
    ctx: Context, question: JsonObject, template: str = "", config: Config | None = None
) -> str:
    """The JSON text for an allocator: the cluster as it is now, and the question."""
    config = config or ctx.config
    answers = gather.ask_nodes(ctx, template, config)
    claimed = ctx.boards.list_claimed(config, ctx.job.job_id)
    return jsonio.dumps({**request.cluster(config, answers, claimed), "request": question})
