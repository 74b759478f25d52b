"""A guest that is paused while something is done to its disks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ganeti import errors
from ganeti.model.enums import Consistency
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls


@dataclass
class Hold:
    """One pause."""

    consistency: Consistency
    #: whether it stood still until the end, once that has come
    stood: bool = False
    #: how long
    seconds: float = 0.0


@contextmanager
def hold(ctx: Context, instance: Instance, node: Node, limit: float) -> Iterator[Hold]:
    """Pause the guest in the context, ``limit`` seconds at most."""
    wire = annotate.instance(ctx.config, instance)
    held = Hold(ctx.rpc.call_one(node, NodeCalls.instance_hold, wire, limit))
    begun = ctx.clock.monotonic()
    try:
        yield held
    except BaseException:  # an interrupt too: let the guest run and raise it
        try:
            ctx.rpc.call_one(node, NodeCalls.instance_release, wire)
        except errors.GanetiError as err:
            ctx.warn(f"instance {instance.name} may be paused: {errors.text(err)}")
        raise
    held.stood = ctx.rpc.call_one(node, NodeCalls.instance_release, wire)
    held.seconds = ctx.clock.monotonic() - begun
