"""Asking ganeti-confd: several candidates at once, and the newest answer counts."""

from __future__ import annotations

import random
import select
import socket
import uuid
from collections.abc import Sequence

from ganeti import errors
from ganeti.base.clock import SYSTEM, Clock, Deadline
from ganeti.confd import messages
from ganeti.confd.messages import Reply, Request

#: As many candidates are asked at the same time.
MOST_ASKED = 6
#: Seconds to wait for replies.
PATIENCE = 10.0


def ask(
    addresses: Sequence[str],
    port: int,
    key: bytes,
    kind: int,
    query: object = None,
    *,
    timeout: float = PATIENCE,
    everybody: bool = False,
    clock: Clock = SYSTEM,
) -> Reply:
    """The reply with the highest serial of those that come in time.

    Up to six of the addresses are asked, chosen at random. The first good reply is enough, unless
    ``everybody`` is to be waited for. Blocks up to ``timeout`` seconds.

    Raises:
        RpcError: nobody answered: no daemon, another key, or clocks that differ too much.
        OSError: the packet cannot be sent.
    """
    chosen = random.sample(list(addresses), min(MOST_ASKED, len(addresses)))
    request = Request(protocol=messages.PROTOCOL, type=kind, query=query, rsalt=str(uuid.uuid4()))
    packet = messages.seal(request, str(int(clock.now())), key)
    end = Deadline(timeout, clock)
    found: list[Reply] = []
    with socket.socket(_family(chosen), socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        for address in chosen:
            sock.sendto(packet, (address, port))
        poller = select.poll()
        poller.register(sock, select.POLLIN)
        while len(found) < len(chosen) and poller.poll(end.left * 1000):
            reply = _receive(sock, key, request.rsalt)
            if reply is None:
                continue
            found.append(reply)
            if not everybody and reply.status == messages.Status.OK:
                break
    if not found:
        raise errors.RpcError(
            f"no reply from {', '.join(chosen)} within {timeout:g} s: ganeti-confd does not run"
            " there, has another hmac.key, or the clocks differ by more than five minutes"
        )
    return max(found, key=lambda reply: (reply.status == messages.Status.OK, reply.serial))


def _family(addresses: Sequence[str]) -> socket.AddressFamily:
    return socket.AF_INET6 if any(":" in address for address in addresses) else socket.AF_INET


def _receive(sock: socket.socket, key: bytes, rsalt: str) -> Reply | None:
    """One packet; None when it is not a reply to this request."""
    try:
        packet = sock.recv(messages.MAX_PACKET + 1)
        return messages.reply(messages.unseal(packet, key), rsalt)
    except (errors.ParseError, OSError):
        return None
