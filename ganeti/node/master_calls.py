"""Calls of this node to the node daemon of the master node; few are open to every node."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ganeti import errors
from ganeti.model import ssconf_keys
from ganeti.net.tls.contexts import Identity
from ganeti.node.context import NodeContext
from ganeti.rpc.client import NodeRpc

T = TypeVar("T")


def call_master(context: NodeContext, seconds: float, method: Callable[..., T], *args: object) -> T:
    """Call the master that the ssconf files name at this moment; blocks ``seconds`` at most.

    Raises:
        GanetiError: it does not answer, refuses, or is not known.
    """
    paths, master = context.paths, context.read_master()
    lines = (context.ssconf(ssconf_keys.NODE_PRIMARY_IPS) or "").splitlines()
    address = dict(line.split() for line in lines if len(line.split()) == 2).get(master)
    if address is None:
        raise errors.ConfigurationError("the address of the master is not in the ssconf files")
    # Made for each call, so that it has the certificate of this moment.
    rpc = NodeRpc(Identity(paths.client_cert, paths.ca_cert).client_context())
    try:
        return rpc.limit_time(seconds).call_address(address, master, method, *args)
    finally:
        rpc.stop()
