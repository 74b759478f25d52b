"""Metadata that a guest may read of its instance, as its node keeps it."""

from __future__ import annotations

from ganeti import errors
from ganeti.model.config import Config
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.planning import communication_nic
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import InstanceMetadata


def describe(config: Config, instance: Instance) -> InstanceMetadata:
    """All that a guest may read, with the parameters of its OS. Pure.

    A parameter that is public and private is only private.
    """
    group = config.nodes[instance.primary_node].group
    private = config.private_osparams_for(instance.os, instance.osparams_private)
    public = config.osparams_for(instance.os, instance.osparams)
    return InstanceMetadata(
        uuid=instance.uuid,
        name=instance.name,
        os=instance.os,
        nics=tuple(annotate.nic(config, nic, group) for nic in instance.nics),
        osparams_public={k: v for k, v in public.items() if k not in private},
        osparams_private=dict(private),
    )


def offer(ctx: Context, instance: Instance, node: Node) -> None:
    """Have a node keep it for a guest that talks to its node; a failure is only reported."""
    if not any(map(communication_nic.is_communication, instance.nics)):
        return
    _send(ctx, describe(ctx.config, instance), node)


def change(ctx: Context, before: Instance, after: Instance, node: Node) -> None:
    """Have a node keep what holds after a change of a running guest, if there is anything."""
    if any(map(communication_nic.is_communication, (*before.nics, *after.nics))):
        _send(ctx, describe(ctx.config, after), node)


def _send(ctx: Context, what: InstanceMetadata, node: Node) -> None:
    try:
        ctx.rpc.call_one(node, NodeCalls.instance_metadata_modify, what)
    except errors.GanetiError as err:
        ctx.warn(f"the metadata of {what.name} on {node.name} did not change: {errors.text(err)}")
