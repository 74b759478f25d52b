"""Replace the certificates of nodes while everything works.

At every moment a node accepts the old and the new certificates of those that call it, until all
that answer have new ones. So no call fails in between, and a renewal that was interrupted continues
from what is in the files: more than one authority in ``ca.pem``, or an old digest in the list of
accepted certificates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ganeti import errors
from ganeti.base import files
from ganeti.base.text import join_names
from ganeti.config.candidates import OLD_CERTIFICATE, without_old_certificates
from ganeti.config.changes import Draft
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node
from ganeti.net import certs, expiry, pem
from ganeti.ops.operation import Context
from ganeti.ops.steps.nodes import candidates, shared_files
from ganeti.paths import Paths
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import NodeRpc

_REASON = "cluster-renew-crypto"


@dataclass(frozen=True)
class _New:
    """New certificates for one node."""

    server: certs.Credential
    client: certs.Credential

    @property
    def digest(self) -> str:
        return pem.digest(self.client.cert)


def is_interrupted(ctx: Context) -> bool:
    """Whether a renewal has begun that did not end.

    Raises:
        X509CertError: ``ca.pem`` of this node cannot be read.
    """
    accepted = ctx.config.cluster.candidate_certs
    return len(_authorities(ctx.paths)) > 1 or without_old_certificates(accepted) != accepted


def _authorities(paths: Paths) -> list[bytes]:
    try:
        return pem.split(paths.ca_cert.read_bytes())
    except OSError as err:
        raise errors.X509CertError(str(paths.ca_cert), f"cannot be read: {err.strerror}") from err


@dataclass(frozen=True)
class Due:
    """Certificates that end so soon that they are replaced."""

    authority: bool
    #: names of nodes
    nodes: tuple[str, ...]


def find_due(ctx: Context) -> Due:
    """Look at the authority on this node, and at the certificates of all nodes that answer.

    Raises:
        X509CertError: ``ca.pem`` of this node cannot be read.
    """
    now = ctx.clock.now()
    nodes = [candidates.online(node) for node in ctx.config.nodes.values()]
    answers = ctx.rpc.call_many(nodes, NodeCalls.crypto_ends).values()
    return Due(
        expiry.is_due(certs.inspect(ctx.paths.ca_cert).not_after, now),
        tuple(
            answer.node.name
            for answer in answers
            if answer.error is None
            and any(expiry.is_due(end, now) for end in answer.get().values())
        ),
    )


def create_authority(ctx: Context) -> None:
    """Make a new authority on this node; the old one stays accepted until all nodes are done.

    Raises:
        X509CertError: the old one cannot be read.
        OSError: a file cannot be written.
    """
    paths = ctx.paths
    old = certs.read_authority(paths.ca_key, paths.ca_cert)
    new = certs.create_ca(ctx.config.cluster.cluster_name)
    # In this order: without its key a certificate changes nothing.
    files.write_atomic(paths.ca_cert, new.cert + old.cert, mode=0o444)
    files.write_atomic(paths.ca_key, new.key, mode=0o400)


def renew(ctx: Context, *, everywhere: bool) -> None:
    """Give nodes new certificates: all, or those that were down when the others got theirs.

    Raises:
        OpExecError: a node that answers does not do its part; what was done so far stays, and
            another renewal continues from there.
    """
    nodes = [candidates.online(node) for node in ctx.config.nodes.values()]
    digests, silent = _digests(ctx.rpc, nodes)
    digests |= _repair(ctx, [node for node in nodes if node.uuid not in digests])
    reached = [node for node in nodes if node.uuid in digests]
    for node in nodes:
        if node.uuid not in digests:
            ctx.warn(
                f"{node.name} does not answer and keeps its old certificates"
                f" ({errors.text(silent[node.uuid])}); run gnt-cluster renew-crypto when it is"
                f" back, or gnt-node add --readd {node.name} if its certificates have expired"
            )
    if ctx.config.cluster.master_node not in digests:
        raise errors.OpExecError(
            "the node daemon of the master must answer; if its certificates have expired, set the"
            " clocks of all nodes to a time before that, restart the daemons, and repeat this"
        )
    if everywhere:
        _renew(ctx, reached, digests)
    if len(reached) == len(nodes):
        _call_each(ctx.rpc, reached, NodeCalls.crypto_forget)


def _digests(
    rpc: NodeRpc, nodes: Iterable[Node]
) -> tuple[dict[NodeUuid, str], dict[NodeUuid, errors.GanetiError]]:
    """Digests of the client certificates of nodes that answer, and why the others do not."""
    answers = rpc.call_many(nodes, NodeCalls.node_crypto_tokens, [("ssl", "get", {})])
    found = {uuid: answer.get()[0][1] for uuid, answer in answers.items() if answer.error is None}
    failed = {uuid: answer.error for uuid, answer in answers.items() if answer.error is not None}
    return found, failed


# nodes that were down ------------------------------------------------------------------------


def _repair(ctx: Context, nodes: Sequence[Node]) -> dict[NodeUuid, str]:
    """Renew nodes that answer only to what this node called others with before.

    Returns the digests of those that have new certificates now.
    """
    repaired: dict[NodeUuid, str] = {}
    for directory in _list_previous(ctx.paths):
        left = [node for node in nodes if node.uuid not in repaired]
        if not left:
            break
        trusted = directory / "ca.pem"
        try:
            rpc = ctx.rpc.use_files(directory / "client.pem", trusted)
        except errors.X509CertError as err:
            ctx.warn(errors.text(err))
            continue
        try:
            digests, _silent = _digests(rpc, left)
            for node in left:
                if node.uuid in digests:
                    repaired[node.uuid] = _repair_one(ctx, rpc, node, digests[node.uuid], trusted)
        finally:
            rpc.stop()
    return repaired


def _list_previous(paths: Paths) -> list[Path]:
    """Directories with what this node has called others with before, the newest first."""
    try:
        return sorted(paths.previous_crypto.iterdir(), reverse=True)
    except FileNotFoundError:
        return []


def _repair_one(ctx: Context, rpc: NodeRpc, node: Node, digest: str, trusted: Path) -> str:
    """Renew a node by earlier calls; these work until it accepts those of today."""
    paths = ctx.paths
    ctx.log(f"Node {node.name} was down during a renewal and gets new certificates now")
    current = paths.ca_cert.read_text(encoding="ascii")
    made = _issue(certs.read_authority(paths.ca_key, paths.ca_cert), node)
    _accept(ctx, {node.uuid: (made.digest, digest)})
    rpc.call_one(node, NodeCalls.crypto_trust, current + trusted.read_text(encoding="ascii"))
    _install(rpc, node, made)
    with ctx.services.hold_sent_ssconf() as values:
        rpc.call_one(node, NodeCalls.write_ssconf_files, dict(values))
    _all_do(ctx.rpc, [node], NodeCalls.crypto_trust, current)
    # It may have missed other changes of these files, too.
    missed = shared_files.list_for_all(paths)
    if node.master_candidate:
        missed += shared_files.list_for_candidates(paths)
    _raise(shared_files.send(ctx, [node], missed))
    _forget_old(ctx)
    return made.digest


# all nodes -----------------------------------------------------------------------------------


def _renew(ctx: Context, nodes: Sequence[Node], digests: Mapping[NodeUuid, str]) -> None:
    """Renew all nodes that answer, this one last."""
    paths = ctx.paths
    authority = certs.read_authority(paths.ca_key, paths.ca_cert)
    trusted = _authorities(paths)
    _all_do(ctx.rpc, nodes, NodeCalls.crypto_trust, b"".join(trusted).decode("ascii"))
    _raise(
        shared_files.send(ctx, (node for node in nodes if node.master_candidate), [paths.ca_key])
    )
    new = {node.uuid: _issue(authority, node) for node in nodes}
    _accept(ctx, {uuid: (made.digest, digests[uuid]) for uuid, made in new.items()})
    with ctx.services.hold_sent_ssconf() as values:
        _all_do(ctx.rpc, nodes, NodeCalls.write_ssconf_files, dict(values))
    ctx.log(f"Renewing the certificates of {join_names(node.name for node in nodes)}")
    failed = []
    master = ctx.config.cluster.master_node
    others = [node for node in nodes if node.uuid != master]
    for node in (*others, ctx.config.master):
        try:
            _install(ctx.rpc, node, new[node.uuid])
        except errors.GanetiError as err:
            failed.append(errors.text(err))
    ctx.rpc.renew()
    _raise(failed)
    _forget_old(ctx)
    if len(trusted) > 1:
        # This node last: as long as it has two authorities, the renewal has not ended.
        for part in (others, [ctx.config.master]):
            _all_do(ctx.rpc, part, NodeCalls.crypto_trust, authority.cert.decode("ascii"))
        ctx.rpc.renew()


def _issue(authority: certs.Credential, node: Node) -> _New:
    addresses = [node.primary_ip]
    return _New(
        certs.issue_server(authority, node.name, addresses),
        certs.issue_client(authority, node.name, addresses),
    )


def _accept(ctx: Context, digests: Mapping[NodeUuid, tuple[str, str]]) -> None:
    """Accept new certificates of candidates besides those they have: uuid -> (new, old) digest."""

    def edit(draft: Draft) -> None:
        accepted = dict(draft.cluster.candidate_certs)
        for uuid, (new, old) in digests.items():
            if uuid in accepted:
                accepted[uuid] = new
                accepted[NodeUuid(uuid + OLD_CERTIFICATE)] = old
        draft.update_cluster(candidate_certs=accepted)

    ctx.store.change(_REASON, ctx.author, edit)
    ctx.services.distribute_ssconf()


def _forget_old(ctx: Context) -> None:
    def edit(draft: Draft) -> None:
        accepted = without_old_certificates(draft.cluster.candidate_certs)
        draft.update_cluster(candidate_certs=accepted)

    ctx.store.change(_REASON, ctx.author, edit)
    for failure in ctx.services.distribute_ssconf():
        ctx.warn(failure)


def _install(rpc: NodeRpc, node: Node, made: _New) -> None:
    server, client = made.server.pem.decode("ascii"), made.client.pem.decode("ascii")
    rpc.call_one(node, NodeCalls.crypto_install, server, client)


def _call_each(
    rpc: NodeRpc, nodes: Iterable[Node], method: Callable[..., object], *args: object
) -> list[str]:
    answers = rpc.call_many(nodes, method, *args)
    return [errors.text(answer.error) for answer in answers.values() if answer.error is not None]


def _all_do(
    rpc: NodeRpc, nodes: Iterable[Node], method: Callable[..., object], *args: object
) -> None:
    _raise(_call_each(rpc, nodes, method, *args))


def _raise(failed: Sequence[str]) -> None:
    """Refuse to go on; OpExecError."""
    if failed:
        raise errors.OpExecError(
            f"{'; '.join(failed)}. The old certificates stay accepted; run gnt-cluster renew-crypto"
            " again"
        )
