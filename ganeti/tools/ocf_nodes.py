"""Resource agent ``ganeti-nodes`` of Pacemaker: the node daemon of each node, as a clone."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

from ganeti import constants, errors, paths
from ganeti.base import services
from ganeti.model import ssconf_keys
from ganeti.net.tls.contexts import Identity
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import NodeRpc
from ganeti.tools import ocf_agent
from ganeti.tools.ocf_agent import Agent, Code, Refusal, Request

_DAEMON = constants.NODED


def start(request: Request) -> Code:
    """Start the node daemon unless it runs."""
    services.start(_DAEMON, request.where)
    return monitor(request)


def stop(request: Request) -> Code:
    """Stop the node daemon; guests run on."""
    services.stop(_DAEMON, request.where, request.count_stop_time())
    return Code.SUCCESS


def monitor(request: Request) -> Code:
    """Whether the node daemon answers; it may refuse to do what this node asks."""
    where = request.where
    if not services.is_running(_DAEMON, where):
        return Code.NOT_RUNNING
    rpc = NodeRpc(Identity(where.client_cert, where.ca_cert).client_context())
    name = paths.hostname()
    try:
        with contextlib.suppress(errors.RefusedCallError):
            rpc.limit_time(request.end.left).call_address(
                _find_address(request, name), name, NodeCalls.version
            )
    finally:
        rpc.stop()
    return Code.SUCCESS


def validate(request: Request) -> None:
    """Refuse a server that is not a node."""
    if not request.where.server_cert.exists():
        raise Refusal(
            Code.INSTALLED,
            f"{request.where.server_cert} is missing: this server is not a node of a cluster",
        )


def _find_address(request: Request, name: str) -> str:
    path = request.where.ssconf(ssconf_keys.NODE_PRIMARY_IPS)
    lines = path.read_text(encoding="utf-8").splitlines()
    addresses = dict(line.split() for line in lines if len(line.split()) == 2)
    if name not in addresses:
        raise errors.ConfigurationError(f"{path} has no address of {name}")
    return addresses[name]


AGENT = Agent(
    name="ganeti-nodes",
    title="Node daemon of Ganeti",
    about=(
        "Starts and stops the node daemon (ganeti-noded) of each node of a Ganeti cluster, and"
        " asks whether it answers. Make it a clone with the meta attribute requires=nothing: the"
        " daemon looks after the guests of a node without quorum, which run on."
    ),
    start=start,
    stop=stop,
    monitor=monitor,
    validate=validate,
    timeouts={"start": 120, "stop": 150, "monitor": 30, "meta-data": 10, "validate-all": 20},
    interval=20,
    for_clones=True,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Do one action; the exit code."""
    return ocf_agent.run(AGENT, argv)


if __name__ == "__main__":
    sys.exit(main())
