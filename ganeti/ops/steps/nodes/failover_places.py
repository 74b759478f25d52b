"""Which instances of a dead node start, in which order, and on which nodes."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti.config.changes import Draft
from ganeti.model.config import Config
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops.operation import Context
from ganeti.ops.planning import recovery


@dataclass(frozen=True)
class Start:
    """An instance that starts elsewhere."""

    instance: Instance
    #: name of the new node
    node: str


@dataclass(frozen=True)
class Places:
    """The places of the instances whose primary node is dead."""

    #: in the order in which they start
    starts: list[Start]
    #: that stay: name and reason
    left: list[tuple[str, str]]
    #: that wait for room: name and what is missing
    roomless: list[tuple[str, str]]


def find_places(ctx: Context, node: Node, *, everything: bool, claim: bool = False) -> Places:
    """The places of all that may start elsewhere; asks the nodes, and blocks meanwhile.

    The first in the order are placed first. N+1 and exclusion tags are kept where that is possible.
    ``everything``: whatever the policies are. ``claim``: other jobs may not take the places.
    """
    now = ctx.clock.now()
    config = _set_offline(ctx.config, node, now)
    ended = ctx.services.has_ended
    rescue = recovery.plan(config, node, now, everything=everything, has_ended=ended)
    if not rescue.failovers:
        return Places([], rescue.left, [])
    from ganeti.ops.allocator import builtin  # it loads numpy

    found = builtin.rescue(ctx, rescue.failovers, node, config, claim=claim)
    goals = {one.name: one.nodes[0] for one in found.moved}
    starts = [Start(item, goals[item.handle]) for item in rescue.failovers if item.handle in goals]
    return Places(starts, rescue.left, list(found.failed))


def _set_offline(config: Config, node: Node, now: float) -> Config:
    if node.offline:
        return config
    draft = Draft(config, now)
    draft.update(node, offline=True, drained=False)
    return draft.result()
