"""Run rights that nodes get by calls of their own: in a migration, and when one is taken back.

A start carries its right inside its own call (``power.py``). ``node/run_rights.py`` says what the
nodes do with them.
"""

from __future__ import annotations

from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import RightState, RunRight


def record(
    ctx: Context, node: Node, instance: Instance, state: RightState, peer: Node | None = None
) -> None:
    """Record a right on a node, with a new number.

    Raises:
        RunRightError: the instance still runs there, or a newer right came before.
        RpcError: the node does not answer.
    """
    right = RunRight(
        uuid=instance.uuid,
        name=instance.name,
        epoch=ctx.services.run_epoch(),
        state=state,
        peer=peer.name if peer else "",
    )
    ctx.rpc.call_one(node, NodeCalls.run_right_set, right, str(instance.real_hypervisor))


def revoke(ctx: Context, node: Node, instance: Instance) -> None:
    """The instance must not run on the node any more; refused while it does. See :func:`record`."""
    record(ctx, node, instance, RightState.GONE)


def forget(ctx: Context, instance: Instance) -> None:
    """Let all nodes forget a removed instance; a node that does not answer keeps a small file."""
    ctx.rpc.call_many(ctx.config.online_nodes(), NodeCalls.run_right_forget, instance.uuid)
