"""Checks that nodes must answer: what they have, reach and know."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ganeti import errors
from ganeti.config.job_claims import MemoryClaim
from ganeti.model.ids import InstanceUuid
from ganeti.model.node import Node
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls
from ganeti.storage import held


def can_reach(ctx: Context, node: Node, other: Node) -> None:
    """Refuse when a node does not reach another one on all its addresses; OpPrereqError."""
    addresses = [[each.name, each.primary_ip, each.secondary_ip] for each in (node, other)]
    wanted = [addresses, [other.name]]
    config = ctx.config
    found = ctx.rpc.call_one(
        node,
        NodeCalls.node_verify,
        {"node-net-test": wanted},
        config.cluster.cluster_name,
        config.cluster.hvparams,
    ).get("node-net-test")
    if found:
        text = "; ".join(map(str, found.values())) if isinstance(found, dict) else str(found)
        raise errors.make_environment_error(f"node {node.name} does not reach {other.name}: {text}")


def os_on_node(
    ctx: Context,
    node: Node,
    os_name: str,
    values: Mapping[str, object],
    hypervisor: str | None,
    *,
    force_variant: bool,
) -> None:
    """Refuse an OS that the node does not have, or not for this hypervisor; OpPrereqError.

    Also when its parameters are wrong. ``force_variant`` takes any variant, or none.
    """
    base = os_name.partition("+")[0]
    if base in ctx.config.cluster.blacklisted_os:
        raise errors.make_state_error(f"OS {base} is blacklisted for new instances")
    try:
        ctx.rpc.call_one(
            node,
            NodeCalls.os_validate,
            True,
            os_name,
            ["parameters"],
            dict(values),
            force_variant,
            str(hypervisor or ""),
        )
    except errors.RpcError:
        raise
    except errors.GanetiError as err:
        raise errors.make_invalid_error(errors.text(err)) from err


def resources(
    ctx: Context,
    node: Node,
    what: str,
    *,
    memory: tuple[str, int] | None = None,
    space: Mapping[tuple[str, str], int] | None = None,
    spindles: Mapping[tuple[str, str], int] | None = None,
    without: Collection[InstanceUuid] | None = (),
    claims: Mapping[str, int] | None = None,
    reserves: bool = False,
) -> None:
    """Refuse when a node has too little of something; one call for everything.

    ``memory`` is a hypervisor and MiB, ``space`` MiB by storage type and name of a unit;
    ``spindles`` counts only where storage is exclusive. Capacity of forthcoming instances is not
    free, but for those in ``without`` (uuids); None means all of them. ``claims`` has the shares
    of instances (uuids) in the memory, if they are known; with ``reserves`` it is going to be
    reserved, not used at once.

    Raises:
        OpPrereqError: not enough, or the node does not say.
    """
    exclusive = bool(ctx.config.ndparams(node).get("exclusive_storage"))
    wanted = {**(space or {}), **(spindles or {} if exclusive else {})}
    units: list[tuple[str, str, list[object]]] = [
        (kind, name, [exclusive] if kind.startswith("lvm") else []) for kind, name in wanted
    ]
    hypervisors = []
    others: list[MemoryClaim] = []
    if memory:
        others = _claim(ctx, node, claims or {f"job {ctx.job.job_id}": memory[1]}, reserves)
        hypervisors.append((memory[0], ctx.config.cluster.hvparams.get(memory[0], {})))
    _boot, rooms, info = ctx.rpc.call_one(node, NodeCalls.node_info, units, hypervisors)
    config, nothing = ctx.config, held.Held()
    for unit, needed, room in zip(wanted, wanted.values(), rooms or []):
        kept = nothing if without is None else held.space(config, node.uuid, unit, without)
        name, measure = ("spindles", "") if unit[0] == "lvm-pv" else ("space", " MiB")
        free = room.get("storage_free")
        _check_free(node, f"{name} in {unit[1]}", needed, free, what, kept, measure)
    if memory:
        free = info[0].get("memory_free") if info else None
        kept = nothing
        if without is not None:
            kept = held.memory(config, node.uuid, without)
            more = [item for item in others if not item.is_counted_by(config)]
            kept = held.Held(
                kept.amount + sum(item.mebibytes for item in more),
                (*kept.by, *(f"job {item.job_id}" for item in more)),
            )
        _check_free(node, "memory", memory[1], free, what, kept)


def _claim(
    ctx: Context, node: Node, claims: Mapping[str, int], reserves: bool
) -> list[MemoryClaim]:
    """Note what this job takes; returns what other jobs take that matters to it.

    A reservation yields to all, a guest that starts only to reservations: guests that start at
    once are told apart by their hypervisor.
    """
    job_id = ctx.job.job_id
    found = ctx.claims.claim_memory(
        MemoryClaim(job_id, node.uuid, uuid, amount, reserves) for uuid, amount in claims.items()
    )
    return found if reserves else [item for item in found if item.reserves]


def _check_free(
    node: Node,
    kind: str,
    needed: int,
    free: object,
    what: str,
    kept: held.Held,
    measure: str = " MiB",
) -> None:
    if not isinstance(free, int):
        raise errors.make_environment_error(
            f"node {node.name} does not say how much {kind} is free"
        )
    left = max(0, free - kept.amount)
    if needed <= left:
        return
    reason = ""
    if kept.amount:
        more = f" and {len(kept.by) - 3} more" if len(kept.by) > 3 else ""
        reason = (
            f" ({free}{measure} less {kept.amount}{measure} that are reserved for"
            f" {', '.join(kept.by[:3])}{more})"
        )
    raise errors.make_resources_error(
        f"not enough {kind} on node {node.name} for {what}: needed {needed}{measure},"
        f" free {left}{measure}{reason}"
    )
