"""Promote and demote master candidates: calls to the nodes, and what is recorded.

The order keeps a half-done promotion harmless: first the node gets the secrets of a candidate,
then the configuration names it and accepts its certificate; with that the master begins to
replicate configuration and jobs to it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.config import candidates
from ganeti.config.changes import Draft
from ganeti.model import base
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node
from ganeti.ops.operation import Context
from ganeti.ops.steps import images
from ganeti.ops.steps.nodes import shared_files
from ganeti.rpc.calls import NodeCalls


def online(node: Node) -> Node:
    """The node as it can be called although it is marked offline."""
    return base.replace(node, offline=False) if node.offline else node


def digest(ctx: Context, node: Node) -> str:
    """SHA1 digest of the node's client certificate.

    Raises:
        OpPrereqError: the node does not answer.
    """
    try:
        tokens = ctx.rpc.call_one(online(node), NodeCalls.node_crypto_tokens, [("ssl", "get", {})])
    except errors.GanetiError as err:
        raise errors.make_environment_error(
            f"node {node.name} cannot become a master candidate: {errors.text(err)}"
        ) from err
    return tokens[0][1]


def send_secrets(ctx: Context, nodes: Sequence[Node]) -> None:
    """Give nodes what a candidate needs besides the configuration.

    Raises:
        OpExecError: a node did not take it; nothing is recorded yet, so trying again is safe.
    """
    files = [*shared_files.list_for_all(ctx.paths), *shared_files.list_for_candidates(ctx.paths)]
    failures = shared_files.send(ctx, [online(node) for node in nodes], files)
    if failures:
        raise errors.OpExecError(
            f"{join_names(node.name for node in nodes)} cannot become master candidate:"
            f" {'; '.join(failures)}"
        )


def record(draft: Draft, digests: Mapping[NodeUuid, str]) -> None:
    """Mark nodes (uuid -> digest of the certificate) as candidates.

    Raises:
        OpPrereqError: a node was drained, set offline or removed meanwhile.
    """
    for uuid in digests:
        node = draft.config.nodes.get(uuid)
        if node is None or not candidates.may_be_candidate(node):
            raise errors.make_state_error(
                f"node {node.name if node else uuid} cannot become a master candidate any more,"
                " another job changed it; try again"
            )
        draft.update(node, master_candidate=True)
    draft.update_cluster(candidate_certs={**draft.cluster.candidate_certs, **digests})


def forget(draft: Draft, uuids: Collection[NodeUuid]) -> None:
    """Accept the certificates of nodes no more."""
    certs = draft.cluster.candidate_certs
    left = {uuid: value for uuid, value in certs.items() if uuid not in uuids}
    if left != certs:
        draft.update_cluster(candidate_certs=left)


def fill_up(ctx: Context, *, among: Collection[str] | None = None) -> list[Node]:
    """Promote nodes until there are enough candidates; returns them. Failures are only warned of.

    The nodes must be locked, or the global lock held exclusively. ``among`` (uuids) limits the
    choice to locked nodes.
    """
    promoted: list[Node] = []
    for node in candidates.choose_promotions(ctx.config):
        if among is not None and node.uuid not in among:
            continue
        try:
            digests = {node.uuid: digest(ctx, node)}
            send_secrets(ctx, [node])
            ctx.store.change("node-promote", ctx.author, partial(record, digests=digests))
        except errors.GanetiError as err:
            ctx.warn(f"node {node.name} was not made a master candidate: {errors.text(err)}")
            continue
        ctx.log(f"Node {node.name} is a master candidate now")
        promoted.append(node)
    if promoted and ctx.config.images:
        images.distribute(ctx)
    return promoted


def inform_demoted(ctx: Context, nodes: Sequence[Node]) -> None:
    """Tell nodes that they are candidates no more; offline ones are left alone."""
    answers = ctx.rpc.call_many(
        [node for node in nodes if not node.offline], NodeCalls.node_demote_from_mc
    )
    for answer in answers.values():
        if answer.error is not None:
            ctx.warn(
                f"a former master candidate keeps its copy of the configuration:"
                f" {errors.text(answer.error)}"
            )
