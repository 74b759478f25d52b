"""Let root of each master candidate log in to all nodes, and nobody of the other nodes.

The wanted keys follow from the configuration and the keys that nodes report. So each change ends
with the same step, and repeating it mends what was interrupted. ``ganeti_pub_keys`` names a key
before a node lets it in, and until all nodes refuse it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from ganeti import errors
from ganeti.base import files
from ganeti.base.text import join_names
from ganeti.config.changes import Draft
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node
from ganeti.net import ssh_files
from ganeti.ops.operation import Context
from ganeti.ops.planning import ssh_keys
from ganeti.ops.planning.ssh_keys import SshPlan
from ganeti.ops.steps.nodes import shared_files
from ganeti.rpc.calls import NodeCalls

#: Held by the operation that changes keys: the last one sees the newest configuration.
_ONE = threading.Lock()
_MEND = "run gnt-cluster redist-conf when it is back"


def is_managed(ctx: Context) -> bool:
    """Whether this cluster was made to manage SSH, and root of the master node agreed."""
    return ctx.config.cluster.modify_ssh_setup and ctx.paths.ssh_managed.exists()


def bring_up_to_date(ctx: Context) -> None:
    """Give all nodes that answer the keys they should have; the others are warned of.

    Blocks for three rounds of calls. Nothing is done in a cluster that does not manage SSH.
    """
    if not is_managed(ctx):
        return
    with _changing(ctx):
        _bring_up_to_date(ctx)


@contextmanager
def _changing(ctx: Context) -> Iterator[None]:
    with _ONE:
        try:
            yield
        except OSError as err:
            raise errors.OpExecError(f"{err.filename} cannot be written: {err.strerror}") from err


def _bring_up_to_date(ctx: Context) -> None:
    cluster, nodes = ctx.config.cluster, ctx.config.online_nodes()
    answers = ctx.rpc.call_many(
        nodes, NodeCalls.node_ssh_keys, cluster.ssh_key_type, cluster.ssh_key_bits
    ).values()
    answered = {answer.node.uuid: answer.get() for answer in answers if answer.error is None}
    for answer in answers:
        if answer.error is not None:
            ctx.warn(f"SSH keys are not up to date: {errors.text(answer.error)}; {_MEND}")
    reached = [answer.node for answer in answers if answer.error is None]
    plan = ssh_keys.decide(ctx.config, read(ctx), answered)
    known = ssh_files.read_lines(ctx.paths.known_hosts)
    lines = ssh_keys.known_hosts(ctx.config, known, answered)
    if lines != known:
        text = "".join(f"{line}\n" for line in lines)
        files.write_atomic(ctx.paths.known_hosts, text, mode=0o644)
    _send(ctx, reached, plan.list_all())
    if _let_in(ctx, reached, plan) and len(reached) == len(ctx.config.nodes):
        _send(ctx, reached, plan.public)


def _let_in(ctx: Context, nodes: Iterable[Node], plan: SshPlan) -> bool:
    """Have nodes let in and refuse keys; whether all did, failures are warned of."""
    failed = [
        answer.error
        for method, keys in (
            (NodeCalls.node_ssh_key_add, plan.allowed),
            (NodeCalls.node_ssh_key_remove, plan.refused),
        )
        if keys
        for answer in ctx.rpc.call_many(nodes, method, keys).values()
        if answer.error is not None
    ]
    for error in failed:
        ctx.warn(f"SSH keys are not up to date: {errors.text(error)}; {_MEND}")
    return not failed


def read(ctx: Context) -> dict[NodeUuid, list[str]]:
    """The keys that are known, by the uuid of their node."""
    found = ssh_files.read_keys(ctx.paths.ssh_public_keys)
    return {NodeUuid(uuid): keys for uuid, keys in found.items()}


def _send(ctx: Context, nodes: Iterable[Node], keys: Mapping[NodeUuid, list[str]]) -> None:
    """Write the keys down, and send what is known of keys to the nodes."""
    path, text = ctx.paths.ssh_public_keys, ssh_files.keys_text(keys)
    if not path.exists() or files.read_text(path) != text:
        files.write_atomic(path, text, mode=0o600)
    candidates = [node for node in nodes if node.master_candidate]
    for failure in (
        *shared_files.send(ctx, nodes, [ctx.paths.known_hosts]),
        *shared_files.send(ctx, candidates, [path]),
    ):
        ctx.warn(f"{failure}; {_MEND}")


def leave(ctx: Context, node: Node) -> None:
    """Have a node that leaves the cluster refuse the keys of the others.

    Raises:
        GanetiError: it does not answer or refuses.
    """
    if not is_managed(ctx):
        return
    keys = [key for found in read(ctx).values() for key in found]
    if keys:
        ctx.rpc.call_one(node, NodeCalls.node_ssh_key_remove, keys)


def renew(ctx: Context, kind: str, bits: int) -> None:
    """Make new keys for root of all nodes; nobody is locked out at any moment.

    New keys are let in besides the old ones before a node begins to use them. After an
    interruption, each node has its old or its new key, and both are let in: to repeat this, or
    :func:`bring_up_to_date`, ends it.

    Raises:
        OpExecError: a node does not answer; the old keys stay in use.
    """
    with _changing(ctx):
        nodes = ctx.config.online_nodes()
        made = _ask_all(ctx, nodes, NodeCalls.node_ssh_keys_renew, kind, bits, False)
        _send(ctx, nodes, _join(read(ctx), made))
        candidates = [made[node.uuid] for node in nodes if node.master_candidate]
        _ask_all(ctx, nodes, NodeCalls.node_ssh_key_add, candidates)
        ctx.log(f"Replacing the SSH keys of {join_names(node.name for node in nodes)}")
        _ask_all(ctx, nodes, NodeCalls.node_ssh_keys_renew, kind, bits, True)

        def edit(draft: Draft) -> None:
            draft.update_cluster(ssh_key_type=kind, ssh_key_bits=bits)

        ctx.store.change("cluster-renew-crypto", ctx.author, edit)
        _bring_up_to_date(ctx)


def _join(
    stored: Mapping[NodeUuid, list[str]], new: Mapping[NodeUuid, str]
) -> dict[NodeUuid, list[str]]:
    found = {uuid: list(keys) for uuid, keys in stored.items()}
    for uuid, key in new.items():
        found.setdefault(uuid, []).append(key)
    return found


def _ask_all(
    ctx: Context, nodes: Iterable[Node], method: Callable[..., object], *args: object
) -> dict[NodeUuid, str]:
    answers = ctx.rpc.call_many(nodes, method, *args)
    failed = [errors.text(answer.error) for answer in answers.values() if answer.error is not None]
    if failed:
        raise errors.OpExecError(
            f"{'; '.join(failed)}. All old keys are still accepted; repair or mark offline what"
            " failed and run gnt-cluster renew-crypto --new-ssh-keys again"
        )
    return {uuid: str(answer.get()) for uuid, answer in answers.items()}
