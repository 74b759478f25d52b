"""Reasons to refuse a migration, before anything is done."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.steps.relocation import destination
from ganeti.rpc.calls import NodeCalls


def explain_refusal(ctx: Context, instance: Instance, *, live: bool) -> str | None:
    """Why a running guest cannot be migrated, None when it can."""
    if not HYPERVISORS.get(instance.real_hypervisor).traits.can_migrate:
        return f"hypervisor {instance.hypervisor} does not migrate"
    wire = annotate.instance(ctx.config, instance)
    source = ctx.config.nodes[instance.primary_node]
    try:
        ctx.rpc.call_one(source, NodeCalls.instance_migratable, wire, live)
    except errors.RpcError:
        raise
    except errors.GanetiError as err:
        return errors.text(err)
    return None


@dataclass(frozen=True)
class Allowed:
    """The exceptions that the user allows."""

    policy: bool = False
    versions: bool = False
    #: the guest may be shrunk
    shrinking: bool = False


def check_target(
    ctx: Context, instance: Instance, target: Node, memory: int, allowed: Allowed
) -> int | None:
    """Refuse (OpPrereqError) a node that cannot take a guest of so many MiB.

    Returns the MiB that the guest has to shrink to so that it fits, None if it fits.
    """
    destination.check_target(ctx, instance, target, ignore_ipolicy=allowed.policy)
    source = ctx.config.nodes[instance.primary_node]
    there, here = (_query_resources(ctx, instance, node) for node in (target, source))
    versions = [info.get("hv_version") for info in (here, there)]
    if versions[0] != versions[1]:
        text = (
            f"hypervisor versions differ: {_format_version(versions[0])} on {source.name},"
            f" {_format_version(versions[1])} on {target.name}"
        )
        if not allowed.versions:
            raise errors.make_state_error(f"{text} (use --ignore-hvversions to continue)")
        ctx.warn(text)
    return _find_smaller_memory(
        ctx, instance, target.name, memory, there.get("memory_free"), allowed
    )


def _query_resources(ctx: Context, instance: Instance, node: Node) -> JsonObject:
    hypervisor = str(instance.real_hypervisor)
    params = ctx.config.cluster.hvparams.get(hypervisor, {})
    _boot, _rooms, found = ctx.rpc.call_one(node, NodeCalls.node_info, [], [(hypervisor, params)])
    return found[0] if found else {}


def _find_smaller_memory(
    ctx: Context, instance: Instance, name: str, memory: int, free: object, allowed: Allowed
) -> int | None:
    if not isinstance(free, int):
        raise errors.make_environment_error(f"node {name} does not say how much memory is free")
    if memory <= free:
        return None
    least = ctx.config.beparams(instance)["minmem"]
    if free < least or not allowed.shrinking:
        hint = "" if free < least else "; without --no-runtime-changes it would be shrunk"
        raise errors.make_resources_error(
            f"not enough memory on node {name} for instance {instance.name}: it has"
            f" {memory} MiB (at least {least}), free are {free} MiB{hint}"
        )
    return free


def _format_version(version: object) -> str:
    return ".".join(map(str, version)) if isinstance(version, list | tuple) else "unknown"
