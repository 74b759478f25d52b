"""Result of a change of a node's role: flags that change, and nodes to be promoted. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.config import candidates
from ganeti.model.config import Config
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node
from ganeti.opcodes.node import OpNodeSetParams

FLAGS = ("master_candidate", "drained", "offline")


@dataclass(frozen=True)
class Decision:
    """Flags of the node afterwards, and the nodes (uuids) that become candidates in its place."""

    master_candidate: bool
    drained: bool
    offline: bool
    master_capable: bool
    instead: tuple[NodeUuid, ...] = ()
    #: what the user should know of it
    notes: tuple[str, ...] = ()


def decide(
    config: Config, node: Node, op: OpNodeSetParams, among: Collection[str] | None = None
) -> Decision:
    """Flags after the operation; at most one of them is set.

    ``among`` limits who may be promoted in the node's place, to those that are locked.

    Raises:
        OpPrereqError: the request contradicts itself or the rules; the text tells what to do.
    """
    capable = node.master_capable if op.master_capable is None else op.master_capable
    _refuse_nonsense(config, node, op, capable)
    flags = _flags(node, op)
    notes: list[str] = []
    if flags["master_candidate"] and not capable:
        flags["master_candidate"] = False
        notes.append(f"Node {node.name} may not become master, so it is not a candidate any more")
    if _promotes_itself(config, node, op, flags, capable=capable):
        flags["master_candidate"] = True
        notes.append(f"Node {node.name} becomes a master candidate, as there are too few")
    instead: tuple[NodeUuid, ...] = ()
    if node.master_candidate and not flags["master_candidate"]:
        instead = _choose_substitutes(config, node, op, among, notes)
    return Decision(**flags, master_capable=capable, instead=instead, notes=tuple(notes))


def _refuse_nonsense(config: Config, node: Node, op: OpNodeSetParams, capable: bool) -> None:
    wanted = [name.replace("_", " ") for name in FLAGS if getattr(op, name)]
    if len(wanted) > 1:
        raise _make_error(f"a node cannot be {' and '.join(wanted)} at the same time; choose one")
    if op.master_candidate and not capable:
        raise _make_error(
            f"node {node.name} may not become master, so it cannot be a master candidate"
            " (--master-capable=yes allows it)"
        )
    if node.uuid != config.cluster.master_node:
        return
    for bad, what in (
        (op.master_candidate is False, "be no master candidate"),
        (op.drained, "be drained"),
        (op.offline, "be offline"),
        (not capable, "be barred from becoming master"),
    ):
        if bad:
            raise _make_error(
                f"node {node.name} is the master and cannot {what}; make another node the"
                " master first (gnt-cluster master-failover)"
            )


def _flags(node: Node, op: OpNodeSetParams) -> dict[str, bool]:
    if any(getattr(op, name) for name in FLAGS):
        return {name: bool(getattr(op, name)) for name in FLAGS}
    return {name: bool(getattr(node, name)) and getattr(op, name) is not False for name in FLAGS}


def _promotes_itself(
    config: Config, node: Node, op: OpNodeSetParams, flags: dict[str, bool], *, capable: bool
) -> bool:
    """Whether a node that comes back fills a gap among the candidates."""
    comes_back = node.offline or node.drained or not node.master_capable
    if not (comes_back and capable) or any(flags.values()) or op.master_candidate is False:
        return False
    have = sum(other.master_candidate for other in config.nodes.values() if other is not node)
    return have < config.cluster.candidate_pool_size


def _choose_substitutes(
    config: Config,
    node: Node,
    op: OpNodeSetParams,
    among: Collection[str] | None,
    notes: list[str],
) -> tuple[NodeUuid, ...]:
    """Choose the nodes that become candidates in place of a demoted node."""
    lacking = candidates.choose_promotions(config, without={node.uuid})
    if not lacking:
        return ()
    names = join_names(other.name for other in lacking)
    if op.auto_promote:
        if among is not None and not {other.uuid for other in lacking} <= set(among):
            raise errors.make_state_error(
                "the master candidates changed while this job waited; try again"
            )
        notes.append(f"To be promoted instead: {names}")
        return tuple(other.uuid for other in lacking)
    size = config.cluster.candidate_pool_size
    text = f"without node {node.name} there are fewer than the {size} wanted master candidates"
    if not op.force:
        raise errors.make_state_error(
            f"{text}; use --auto-promote to promote {names} instead, or --force to do without"
        )
    notes.append(f"WARNING: {text}")
    return ()


def _make_error(text: str) -> errors.OpPrereqError:
    return errors.make_invalid_error(text)
