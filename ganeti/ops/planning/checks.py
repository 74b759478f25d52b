"""Checks that many operations share and that the configuration answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model import ipolicy, params
from ganeti.model.config import Config
from ganeti.model.ids import GroupUuid, NodeUuid
from ganeti.model.node import Node
from ganeti.ops.operation import Context

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?")


def host_name(name: str, what: str) -> str:
    """The name in lower case if it can be a host name; OpPrereqError otherwise."""
    lowered = name.lower().rstrip(".")
    labels = lowered.split(".")
    if len(lowered) > 253 or not all(
        len(label) <= 63 and _LABEL.fullmatch(label) for label in labels
    ):
        raise errors.make_invalid_error(
            f"'{name}' cannot be the name of {what}: letters, digits, '-' and '.' are allowed,"
            " up to 63 characters between dots"
        )
    return lowered


def hypervisor_enabled(ctx: Context, name: str) -> str:
    """The hypervisor if the cluster uses it; OpPrereqError otherwise."""
    enabled = ctx.config.cluster.enabled_hypervisors
    if name not in enabled:
        raise errors.make_invalid_error(
            f"hypervisor {name} is not enabled in this cluster; enabled: {', '.join(enabled)}"
        )
    return name


def check_hvparams(
    ctx: Context,
    hypervisor: str,
    os_name: str,
    own: Mapping[str, object],
    wanted: Mapping[str, object],
) -> JsonObject:
    """Typed parameters of one instance; refused if unknown or only settable for the cluster.

    Raises:
        OpPrereqError: a parameter that belongs to the cluster.
        ParameterError: unknown name or wrong value.
    """
    driver = HYPERVISORS.get(hypervisor)
    wrong = sorted(set(wanted) & driver.traits.global_params)
    if wrong:
        raise errors.make_invalid_error(
            f"parameters of the whole cluster, not of an instance: {', '.join(wrong)}"
        )
    values = params.check(driver.params, params.drop_defaults(wanted), f"hypervisor {hypervisor}")
    full = ctx.config.hvparams_for(hypervisor, os_name, {**own, **values})
    params.check(driver.params, full, f"hypervisor {hypervisor}", partial=False)
    return values


def check_usable(node: Node, what: str) -> None:
    """Refuse a node that takes no instances; OpPrereqError."""
    for bad, word in (
        (node.offline, "offline"),
        (node.drained, "drained"),
        (not node.vm_capable, "not able to run instances"),
    ):
        if bad:
            raise errors.make_state_error(f"node {node.name} is {word} and cannot be used {what}")


def all_online(nodes: Iterable[Node], what: str) -> None:
    """Refuse when a node is offline; ``what`` says what it is needed for. OpPrereqError."""
    for node in nodes:
        if node.offline:
            raise errors.make_state_error(
                f"node {node.name} is marked offline, but it is needed {what}"
            )


def shape_allowed(
    ctx: Context,
    group: GroupUuid,
    shape: ipolicy.Shape,
    *,
    before: ipolicy.Shape | None = None,
    ignore: bool = False,
) -> None:
    """Refuse a shape that a group's instance policy forbids; with ``ignore`` only warn.

    Violations that the shape ``before`` had already do not count. OpPrereqError.
    """
    rules = ctx.config.ipolicy(group)
    known = [] if before is None else ipolicy.violations(rules, before)
    broken = [text for text in ipolicy.violations(rules, shape) if text not in known]
    if not broken:
        return
    text = f"instance policy of the node group: {'; '.join(broken)}"
    if not ignore:
        raise errors.make_invalid_error(f"{text} (--ignore-ipolicy allows it)")
    ctx.warn(text)


def spindles_count(config: Config, what: str, nodes: Iterable[NodeUuid]) -> None:
    """Refuse a number of spindles for a disk on nodes (uuids) without exclusive storage.

    Raises:
        OpPrereqError: (INVAL) spindles are not counted there.
    """
    exclusive = [
        bool(config.ndparams(config.nodes[uuid]).get("exclusive_storage")) for uuid in nodes
    ]
    if not exclusive or not all(exclusive):
        raise errors.make_invalid_error(
            f"{what}: spindles cannot be specified where exclusive storage is not active"
        )
