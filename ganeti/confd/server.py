"""Takes packets from a UDP socket and answers those that are signed, fresh and new."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from ganeti import errors
from ganeti.base.clock import SYSTEM, Clock
from ganeti.confd import answers, messages
from ganeti.confd.answers import View
from ganeti.confd.messages import Reply, Status

log = logging.getLogger(__name__)

#: Number of packets that are remembered, to drop replayed ones.
REMEMBERED = 100_000


class Responder:
    """Packet in, packet out, or nothing. For one thread."""

    def __init__(self, key_file: Path, view: Callable[[], View | None], clock: Clock) -> None:
        self._key_file = key_file
        self._view = view
        self._clock = clock
        self._key = b""
        self._stamp: tuple[int, int] | None = None
        #: signatures of packets that were answered, and until when they would be accepted
        self._seen: OrderedDict[str, float] = OrderedDict()

    def respond(self, packet: bytes) -> bytes | None:
        """The reply to a packet; None for one that deserves none."""
        now = self._clock.now()
        try:
            key = self._read_key()
            sealed = messages.unseal(packet, key)
            self._refuse_again(sealed.signature, now)
            request = messages.request(sealed, now)
        except (errors.ParseError, OSError) as err:
            log.debug("dropped a packet: %s", err)
            return None
        try:
            reply = answers.answer(self._view(), request)
            made = messages.seal(reply, request.rsalt, key)
        except Exception:  # whatever it is, the next packet is answered
            log.exception("a request of type %d failed by a bug", request.type)
            return messages.seal(answers.DISABLED, request.rsalt, key)
        if len(made) <= messages.MAX_PACKET:
            return made
        text = f"the answer has {len(made)} bytes, more than the {messages.MAX_PACKET} of a packet"
        return messages.seal(Reply(status=Status.ERROR, answer=text), request.rsalt, key)

    def _read_key(self) -> bytes:
        """The key, which a renewal may have replaced."""
        facts = os.stat(self._key_file)
        stamp = facts.st_ino, facts.st_mtime_ns
        if stamp != self._stamp:
            self._key, self._stamp = self._key_file.read_bytes(), stamp
        if not self._key.strip():
            raise errors.ParseError(f"{self._key_file} is empty, so nothing can be signed")
        return self._key

    def _refuse_again(self, signature: str, now: float) -> None:
        """ParseError for a packet that was answered before: somebody sends what he overheard."""
        seen = self._seen
        while seen:
            oldest, until = next(iter(seen.items()))
            if until > now and len(seen) < REMEMBERED:
                break
            del seen[oldest]
        if signature in seen:
            raise errors.ParseError("it was answered before")
        seen[signature] = now + 2 * messages.SKEW


class Server:
    """A socket and the thread that serves it."""

    def __init__(self, address: tuple[str, int], responder: Responder) -> None:
        """Bind the socket.

        Raises:
            OSError: the address is not ours, or in use.
        """
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._sock = socket.socket(family, socket.SOCK_DGRAM)
        try:
            self._sock.bind(address)
        except OSError:
            self._sock.close()
            raise
        self._sock.setblocking(False)
        self._responder = responder
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._serve, name="confd")

    @property
    def port(self) -> int:
        return int(self._sock.getsockname()[1])

    def start(self) -> None:
        self._thread.start()

    def _serve(self) -> None:
        poller = select.poll()
        poller.register(self._sock, select.POLLIN)
        poller.register(self._reader, select.POLLIN)
        while True:
            ready = {fd for fd, _event in poller.poll()}
            if self._reader in ready:
                return
            with contextlib.suppress(OSError):  # of one packet; the next one may go
                packet, sender = self._sock.recvfrom(messages.MAX_PACKET + 1)
                reply = self._responder.respond(packet)
                if reply is not None:
                    self._sock.sendto(reply, sender)

    def stop(self) -> None:
        """End the thread and close the socket; packets that wait are lost."""
        os.write(self._writer, b"x")
        self._thread.join()
        self._sock.close()
        os.close(self._reader)
        os.close(self._writer)


def make(
    address: tuple[str, int], key_file: Path, view: Callable[[], View | None], clock: Clock = SYSTEM
) -> Server:
    """A server that answers from what ``view`` returns; OSError as of :class:`Server`."""
    return Server(address, Responder(key_file, view, clock))
