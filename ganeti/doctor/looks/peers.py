"""Other nodes: whether their node daemons answer, and what time they have."""

from __future__ import annotations

from collections.abc import Mapping

from ganeti import constants, errors
from ganeti.base.clock import SYSTEM
from ganeti.net import http_client, resolve
from ganeti.net.http_link import Call, Response, read_clock
from ganeti.net.tls.contexts import Identity
from ganeti.paths import Paths

#: Seconds for an answer.
_PATIENCE = 10.0

#: The problem, and seconds that the clock there is ahead.
Answer = tuple[str, float | None]


def ask(where: Paths, nodes: Mapping[str, str]) -> dict[str, Answer]:
    """Ask node daemons by their addresses, all at the same time.

    A node daemon refuses this request, and says its time.
    """
    try:
        context = Identity(where.client_cert, where.ca_cert).client_context()
    except errors.X509CertError as err:
        return dict.fromkeys(nodes, (errors.text(err), None))
    port = resolve.port(constants.NODED)
    calls = [
        Call(address, port, "/version", timeout=_PATIENCE, method="GET")
        for address in nodes.values()
    ]
    begin = SYSTEM.now()
    with http_client.Client(context) as client:
        answers = client.fan_out(calls)
    end = SYSTEM.now()
    return {name: _read(answer, begin, end) for name, answer in zip(nodes, answers, strict=True)}


def _read(answer: Response | errors.GanetiError, begin: float, end: float) -> Answer:
    if isinstance(answer, errors.GanetiError):
        return errors.text(answer), None
    return "", read_clock(answer.headers.get("date", ""), begin, end)
