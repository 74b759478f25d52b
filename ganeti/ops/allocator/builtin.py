"""The allocator ``hail`` inside the master daemon: no process, and no request as text.

A decision has two parts. First it asks the nodes what they have free; jobs may do that at the same
time. Then, one job after the other, it takes the newest configuration and the places that other
jobs have claimed, chooses, and claims what it has chosen. So two jobs never get the same memory.

This module loads numpy; :mod:`ganeti.ops.allocator.ask` imports it at first use.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from ganeti import errors
from ganeti.model.config import Config
from ganeti.model.ids import GroupUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes import wire
from ganeti.ops.allocator import board, gather
from ganeti.ops.allocator.answers import Moves
from ganeti.ops.allocator.board import View
from ganeti.ops.allocator.request import NewInstance
from ganeti.ops.board import convert
from ganeti.ops.board.claims import Claim
from ganeti.ops.operation import Context
from ganeti.placement import facts, relocate
from ganeti.placement.choose import Choice, Chooser, Wish, choose_all
from ganeti.placement.facts import LOCAL, Cluster
from ganeti.placement.refusal import Refusal
from ganeti.placement.relocate import Leave, Relocations
from ganeti.placement.secondary import choose_secondary

_LOG = logging.getLogger(__name__)

#: Option of allocators: place an instance even if the cluster would not survive the loss of a node.
NO_CAPACITY_CHECKS = "no-capacity-checks"


class _Scene:
    """The facts for one decision."""

    def __init__(self, ctx: Context, view: View, without: str) -> None:
        self.view = view
        self.survive = keeps_capacity(ctx)
        self.cluster: Cluster = view.cluster
        if without:
            kept = tuple(item for item in self.cluster.instances if item.name != without)
            self.cluster = dataclasses.replace(self.cluster, instances=kept)

    def chooser(self) -> Chooser:
        layout_of = self.view.layout if self.cluster is self.view.cluster else None
        return Chooser(self.cluster, survive=self.survive, layout_of=layout_of)


def keeps_capacity(ctx: Context) -> bool:
    """Whether the cluster has to survive the loss of any node after each choice."""
    return NO_CAPACITY_CHECKS not in ctx.config.cluster.default_iallocator_params


@contextmanager
def _decision(
    ctx: Context, template: str, without: str = "", config: Config | None = None
) -> Iterator[_Scene]:
    """Ask the nodes; then, until the end of the context, no other job decides."""
    answers = gather.ask_nodes(ctx, template, config)
    asked = ctx.clock.monotonic()
    with ctx.boards.decision():
        begin = ctx.clock.monotonic()
        yield _Scene(ctx, board.see(ctx, answers, config), without)
    _LOG.info(
        "placement decided in %.1f ms, after %.1f ms of waiting for others",
        *((ctx.clock.monotonic() - begin) * 1000, (begin - asked) * 1000),
    )


# new instances -----------------------------------------------------------------------------------


def place(
    ctx: Context, new: NewInstance, restrict_to: Sequence[str] | None = None, without: str = ""
) -> list[Node]:
    """Choose and claim nodes for a new instance; the first is the primary node.

    ``without`` is the handle of an instance that is going to leave, so its place counts as free.

    Raises:
        OpPrereqError: there is no place; the error says what is missing and what would help.
    """
    wish = _wish(new, restrict_to)
    with _decision(ctx, new.template, without) as scene:
        chooser = scene.chooser()
        choice = chooser.choose(wish)
        ctx.boards.claim(ctx.job.job_id, _claims(wish, choice))
    if choice.refusal is not None:
        raise refusal_error(chooser.explain(wish, choice).refusal or choice.refusal)
    return _nodes(ctx, choice)


def place_all(
    ctx: Context, new: Sequence[NewInstance]
) -> tuple[dict[str, list[Node]], dict[str, Refusal]]:
    """Choose and claim nodes for many; returns them by instance, and refusals of the others."""
    wishes = [_wish(item, None) for item in new]
    with _decision(ctx, new[0].template if new else "") as scene:
        choices = choose_all(
            scene.cluster, wishes, survive=scene.survive, layout_of=scene.view.layout
        )
        claims = [one for pair in zip(wishes, choices) for one in _claims(*pair)]
        ctx.boards.claim(ctx.job.job_id, claims)
    placed = {w.item.name: _nodes(ctx, c) for w, c in zip(wishes, choices) if c.nodes}
    missing = {w.item.name: c.refusal for w, c in zip(wishes, choices) if c.refusal is not None}
    return placed, missing


def refusal_error(reason: Refusal) -> errors.OpPrereqError:
    """The error of an instance without a place: text, code, and the refusal as data."""
    return errors.make_resources_error(
        f"allocator 'hail' found no place: {reason.text}", reason.data()
    )


def _wish(new: NewInstance, restrict_to: Sequence[str] | None) -> Wish:
    networks = frozenset(str(nic["network"]) for nic in new.nics if nic.get("network"))
    only = None if restrict_to is None else frozenset(restrict_to)
    return Wish(new.place_on(()), new.group_name, only, new.ignore_policy, networks)


def _claims(wish: Wish, choice: Choice) -> list[Claim]:
    if not choice.nodes:
        return []
    first, second = (*choice.nodes, "")[:2]
    takes = dataclasses.replace(wish.item, primary=first, secondary=second)
    return [Claim(wish.item.name, choice.nodes, (takes,))]


def _nodes(ctx: Context, choice: Choice) -> list[Node]:
    return [ctx.config.node(name) for name in choice.nodes]


# instances that move -----------------------------------------------------------------------------


def choose_other_node(ctx: Context, instance: Instance, template: str) -> Node:
    """Choose another secondary node, or another primary node on shared storage.

    Raises:
        OpPrereqError: there is none.
    """
    with _decision(ctx, template) as scene:
        item = next((one for one in scene.cluster.instances if one.name == instance.handle), None)
        if item is None:
            raise errors.make_unknown_error(f"instance '{instance.handle}' is not known")
        leave = frozenset({item.secondary or item.primary})
        name, reason = choose_secondary(scene.cluster, item, leave)
        if name:
            moved = item.secondary or item.mirror is not facts.Mirror.EVERY_NODE
            nodes = (item.primary, name) if moved else (name,)
            ctx.boards.claim(ctx.job.job_id, [_move_claim(item, nodes)])
    if reason is not None:
        raise refusal_error(reason)
    return ctx.config.node(name)


def evacuate(
    ctx: Context,
    items: Sequence[Instance],
    mode: str,
    leave: Collection[Node],
    *,
    soft_errors: bool,
) -> Moves:
    """Choose where the instances of these nodes go, in one decision."""
    template = _template_of(ctx, items)
    with _decision(ctx, template) as scene:
        found = relocate.evacuate(
            scene.cluster,
            [item.handle for item in items],
            Leave(mode),
            frozenset(node.name for node in leave),
            ignore_soft=soft_errors,
        )
        _claim_moves(ctx, scene.cluster, found)
    return _moves(found)


def rescue(
    ctx: Context, items: Sequence[Instance], node: Node, config: Config, *, claim: bool
) -> Relocations:
    """Choose where the instances of a dead node start, in this order, in one decision.

    ``config``: the configuration in which the node is offline. ``claim``: others may not take the
    places.
    """
    with _decision(ctx, _template_of(ctx, items), config=config) as scene:
        found = relocate.evacuate(
            scene.cluster,
            [item.handle for item in items],
            Leave.PRIMARY,
            frozenset({node.name}),
            in_order=True,
        )
        if claim:
            _claim_moves(ctx, scene.cluster, found)
    return found


def change_group(ctx: Context, items: Sequence[Instance], groups: Collection[GroupUuid]) -> Moves:
    """Choose where instances go in other groups, in one decision."""
    template = _template_of(ctx, items)
    with _decision(ctx, template) as scene:
        found = relocate.change_group(
            scene.cluster, [item.handle for item in items], groups, survive=scene.survive
        )
        _claim_moves(ctx, scene.cluster, found)
    return _moves(found)


def _template_of(ctx: Context, items: Sequence[Instance]) -> str:
    """The template whose free space counts: that of local disks, if an instance has them."""
    kinds = [convert.template(ctx.config, item) for item in items]
    return next((kind for kind in kinds if kind in LOCAL), kinds[0] if kinds else "")


def _claim_moves(ctx: Context, cluster: Cluster, found: Relocations) -> None:
    items = {item.name: item for item in cluster.instances}
    claims = [_move_claim(items[one.name], one.nodes) for one in found.moved]
    ctx.boards.claim(ctx.job.job_id, claims)


def _move_claim(item: facts.Instance, nodes: tuple[str, ...]) -> Claim:
    """Make the claim of a move on the new nodes, without what the instance has there already."""
    takes = []
    for node in nodes:
        runs = node == nodes[0] != item.primary
        copied = item.template in LOCAL and node not in (item.primary, item.secondary)
        if runs or copied:
            takes.append(
                dataclasses.replace(
                    item,
                    primary=node,
                    secondary="",
                    template="plain" if copied else "diskless",
                    memory=item.memory if runs else 0,
                    vcpus=item.vcpus if runs else 0,
                    disk=item.disk if copied else 0,
                    tags=item.tags if runs else (),
                    name=f"{item.name} (on its way to {node})",
                )
            )
    return Claim(item.name, nodes, tuple(takes))


def _moves(found: Relocations) -> Moves:
    return Moves(
        [(one.name, one.group, list(one.nodes)) for one in found.moved],
        list(found.failed),
        [
            [wire.from_wire(relocate.wire_step(one.name, step)) for step in one.steps]
            for one in found.moved
        ],
    )
