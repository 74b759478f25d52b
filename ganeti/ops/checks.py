"""Checks that many operations share."""

from __future__ import annotations

import re
import socket
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ganeti import constants, errors
from ganeti.config.reservations import MemoryClaim
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model import ipolicy, params
from ganeti.model.config import Config
from ganeti.model.node import Node
from ganeti.model.params import Params
from ganeti.net import resolve
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls
from ganeti.storage import held

#: Seconds in which a host that is up takes or refuses a connection.
_PING = 3.0
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?")


def host_name(name: str, what: str) -> str:
    """The name in lower case if it can be a host name; OpPrereqError otherwise."""
    lowered = name.lower().rstrip(".")
    labels = lowered.split(".")
    if len(lowered) > 253 or not all(
        len(label) <= 63 and _LABEL.fullmatch(label) for label in labels
    ):
        raise errors.OpPrereqError(
            f"'{name}' cannot be the name of {what}: letters, digits, '-' and '.' are allowed,"
            " up to 63 characters between dots",
            errors.ErrorCode.INVAL,
        )
    return lowered


def new_name(name: str, *, name_check: bool, ip_check: bool) -> str:
    """The name that a new instance gets; blocks some seconds for ``ip_check``.

    ``name_check`` takes the full name that the name service has for it; it refuses a name without
    an address and one that is an alias of another host. ``ip_check`` also refuses one whose
    address answers.

    Raises:
        OpPrereqError: the text says which of these it is.
    """
    if not name_check:
        if ip_check:
            raise errors.OpPrereqError(
                "the address of a name is only checked with its name; add --name-check",
                errors.ErrorCode.INVAL,
            )
        return name
    try:
        address, full = resolve.address(name), resolve.canonical(name).lower()
    except errors.ResolverError as err:
        raise errors.OpPrereqError(
            f"'{name}' has no address ({errors.text(err)}); leave --name-check away",
            errors.ErrorCode.RESOLVER,
        ) from err
    if full != name and not full.startswith(f"{name}."):
        raise errors.OpPrereqError(
            f"'{name}' resolves to {full}, the name of another host; use that name, mend the name"
            " service, or leave --name-check away",
            errors.ErrorCode.INVAL,
        )
    if ip_check and _answers(address):
        raise errors.OpPrereqError(
            f"address {address} of '{name}' is in use already; leave --ip-check away if that is"
            " meant",
            errors.ErrorCode.NOTUNIQUE,
        )
    return host_name(full, "an instance")


def _answers(address: str) -> bool:
    """Whether a host with this address takes or refuses a connection."""
    try:
        socket.create_connection((address, resolve.port(constants.NODED)), _PING).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return True


def hypervisor_enabled(ctx: Context, name: str) -> str:
    """The hypervisor if the cluster uses it; OpPrereqError otherwise."""
    enabled = ctx.config.cluster.enabled_hypervisors
    if name not in enabled:
        raise errors.OpPrereqError(
            f"hypervisor {name} is not enabled in this cluster; enabled: {', '.join(enabled)}",
            errors.ErrorCode.INVAL,
        )
    return name


def check_hvparams(
    ctx: Context,
    hypervisor: str,
    os_name: str,
    own: Mapping[str, Any],
    wanted: Mapping[str, Any],
) -> Params:
    """Typed parameters of one instance; refused if unknown or only settable for the cluster.

    Raises:
        OpPrereqError: a parameter that belongs to the cluster.
        ParameterError: unknown name or wrong value.
    """
    driver = HYPERVISORS.get(hypervisor)
    wrong = sorted(set(wanted) & driver.traits.global_params)
    if wrong:
        raise errors.OpPrereqError(
            f"parameters of the whole cluster, not of an instance: {', '.join(wrong)}",
            errors.ErrorCode.INVAL,
        )
    values = params.check(
        driver.params, params.without_defaults(wanted), f"hypervisor {hypervisor}"
    )
    full = ctx.config.hvparams_for(hypervisor, os_name, {**own, **values})
    params.check(driver.params, full, f"hypervisor {hypervisor}", partial=False)
    return values


def usable_node(node: Node, what: str) -> None:
    """Refuse a node that takes no instances; OpPrereqError."""
    for bad, word in (
        (node.offline, "offline"),
        (node.drained, "drained"),
        (not node.vm_capable, "not able to run instances"),
    ):
        if bad:
            raise errors.OpPrereqError(
                f"node {node.name} is {word} and cannot be used {what}", errors.ErrorCode.STATE
            )


def all_online(nodes: Iterable[Node], what: str) -> None:
    """Refuse when a node is offline; ``what`` says what it is needed for. OpPrereqError."""
    for node in nodes:
        if node.offline:
            raise errors.OpPrereqError(
                f"node {node.name} is marked offline, but it is needed {what}",
                errors.ErrorCode.STATE,
            )


def can_reach(ctx: Context, node: Node, other: Node) -> None:
    """Refuse when a node does not reach another one on all its addresses; OpPrereqError."""
    addresses = [[each.name, each.primary_ip, each.secondary_ip] for each in (node, other)]
    wanted = [addresses, [other.name]]
    config = ctx.config
    found = ctx.rpc.one(
        node,
        NodeCalls.node_verify,
        {"node-net-test": wanted},
        config.cluster.cluster_name,
        config.cluster.hvparams,
    ).get("node-net-test")
    if found:
        text = "; ".join(map(str, found.values())) if isinstance(found, dict) else str(found)
        raise errors.OpPrereqError(
            f"node {node.name} does not reach {other.name}: {text}", errors.ErrorCode.ENVIRON
        )


def shape_allowed(
    ctx: Context,
    group: str,
    shape: ipolicy.Shape,
    *,
    before: ipolicy.Shape | None = None,
    ignore: bool = False,
) -> None:
    """Refuse a shape that a group's instance policy forbids; with ``ignore`` only warn.

    What the shape ``before`` broke already is no reason. OpPrereqError.
    """
    rules = ctx.config.ipolicy(group)
    known = [] if before is None else ipolicy.violations(rules, before)
    broken = [text for text in ipolicy.violations(rules, shape) if text not in known]
    if not broken:
        return
    text = f"instance policy of the node group: {'; '.join(broken)}"
    if not ignore:
        raise errors.OpPrereqError(f"{text} (--ignore-ipolicy allows it)", errors.ErrorCode.INVAL)
    ctx.warn(text)


def os_on_node(
    ctx: Context,
    node: Node,
    os_name: str,
    values: Mapping[str, Any],
    hypervisor: str | None,
    *,
    force_variant: bool,
) -> None:
    """Refuse an OS that the node does not have, or not for this hypervisor; OpPrereqError.

    Also when its parameters are wrong. ``force_variant`` takes any variant, or none.
    """
    base = os_name.partition("+")[0]
    if base in ctx.config.cluster.blacklisted_os:
        raise errors.OpPrereqError(
            f"OS {base} is blacklisted for new instances", errors.ErrorCode.STATE
        )
    try:
        ctx.rpc.one(
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
        raise errors.OpPrereqError(errors.text(err), errors.ErrorCode.INVAL) from err


def spindles_count(config: Config, what: str, nodes: Iterable[str]) -> None:
    """Refuse a number of spindles for a disk on nodes (uuids) without exclusive storage.

    Raises:
        OpPrereqError: (INVAL) spindles are not counted there.
    """
    exclusive = [
        bool(config.ndparams(config.nodes[uuid]).get("exclusive_storage")) for uuid in nodes
    ]
    if not exclusive or not all(exclusive):
        raise errors.OpPrereqError(
            f"{what}: spindles cannot be specified where exclusive storage is not active",
            errors.ErrorCode.INVAL,
        )


def resources(
    ctx: Context,
    node: Node,
    what: str,
    *,
    memory: tuple[str, int] | None = None,
    space: Mapping[tuple[str, str], int] | None = None,
    spindles: Mapping[tuple[str, str], int] | None = None,
    without: Collection[str] | None = (),
    claims: Mapping[str, int] | None = None,
    reserves: bool = False,
) -> None:
    """Refuse when a node has too little of something; one call for everything.

    ``memory`` is a hypervisor and MiB, ``space`` MiB by storage type and name of a unit;
    ``spindles`` counts only where storage is exclusive. What
    forthcoming instances hold is not free, but for those in ``without`` (uuids); with None
    nothing is held back: the question is for something that is reserved itself. ``claims`` has
    the shares of instances (uuids) in the memory, if they are known; with ``reserves`` it is going
    to be reserved, not used at once.

    Raises:
        OpPrereqError: not enough, or the node does not say.
    """
    exclusive = bool(ctx.config.ndparams(node).get("exclusive_storage"))
    wanted = {**(space or {}), **(spindles or {} if exclusive else {})}
    units: list[tuple[str, str, list[Any]]] = [
        (kind, name, [exclusive] if kind.startswith("lvm") else []) for kind, name in wanted
    ]
    hypervisors = []
    others: list[MemoryClaim] = []
    if memory:
        others = _claim(ctx, node, claims or {f"job {ctx.job.job_id}": memory[1]}, reserves)
        hypervisors.append((memory[0], ctx.config.cluster.hvparams.get(memory[0], {})))
    _boot, rooms, info = ctx.rpc.one(node, NodeCalls.node_info, units, hypervisors)
    config, nothing = ctx.config, held.Held()
    for unit, needed, room in zip(wanted, wanted.values(), rooms or []):
        kept = nothing if without is None else held.space(config, node.uuid, unit, without)
        name, measure = ("spindles", "") if unit[0] == "lvm-pv" else ("space", " MiB")
        free = room.get("storage_free")
        _enough(node, f"{name} in {unit[1]}", needed, free, what, kept, measure)
    if memory:
        free = info[0].get("memory_free") if info else None
        kept = nothing
        if without is not None:
            kept = held.memory(config, node.uuid, without)
            more = [item for item in others if not item.told_by(config)]
            kept = held.Held(
                kept.amount + sum(item.mebibytes for item in more),
                (*kept.by, *(f"job {item.job_id}" for item in more)),
            )
        _enough(node, "memory", memory[1], free, what, kept)


def _claim(
    ctx: Context, node: Node, claims: Mapping[str, int], reserves: bool
) -> list[MemoryClaim]:
    """Note what this job takes; gives what of others matters to it.

    A reservation yields to all, a guest that starts only to reservations: guests that start at
    once are told apart by their hypervisor.
    """
    job_id = ctx.job.job_id
    found = ctx.reservations.claim_memory(
        MemoryClaim(job_id, node.uuid, uuid, amount, reserves) for uuid, amount in claims.items()
    )
    return found if reserves else [item for item in found if item.reserves]


def _enough(
    node: Node,
    kind: str,
    needed: int,
    free: object,
    what: str,
    kept: held.Held,
    measure: str = " MiB",
) -> None:
    if not isinstance(free, int):
        raise errors.OpPrereqError(
            f"node {node.name} does not say how much {kind} is free", errors.ErrorCode.ENVIRON
        )
    left = max(0, free - kept.amount)
    if needed <= left:
        return
    why = ""
    if kept.amount:
        more = f" and {len(kept.by) - 3} more" if len(kept.by) > 3 else ""
        why = (
            f" ({free}{measure} less {kept.amount}{measure} that are reserved for"
            f" {', '.join(kept.by[:3])}{more})"
        )
    raise errors.OpPrereqError(
        f"not enough {kind} on node {node.name} for {what}: needed {needed}{measure},"
        f" free {left}{measure}{why}",
        errors.ErrorCode.NORES,
    )
