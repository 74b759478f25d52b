"""The connection over which a dump is sent.

On the wire: a TLS connection with certificates on both sides, then ``M=`` and the magic word, then
the dump, compressed by a tool or not, and the end of the stream with its close_notify. That is
what Ganeti's own transfers look like. The receiver says its close_notify when everything is on its
disk. A sender from here waits for that; one from somewhere else need not.
"""

from __future__ import annotations

import hmac
import logging
import socket
from collections.abc import Iterator
from typing import Any

from ganeti import errors
from ganeti.net.tls.stream import TLSSocket
from ganeti.node import streams
from ganeti.node.dump_transfer import Transfer
from ganeti.rpc.objects import ImportExportOptions

log = logging.getLogger(__name__)

#: Seconds of one attempt to connect, between two, and of a silence in the middle.
_ATTEMPT, _PAUSE, STALLED = 20.0, 1.0, 300.0
#: Seconds that the last writes of a receiver may take.
_LAST_WRITES = 3600.0
_PREFIX = b"M="


def connect(transfer: Transfer, host: str, port: int, context: object, limit: float) -> TLSSocket:
    """A connection to the other end; tried again until the time is over."""
    end = transfer.clock.monotonic() + limit
    while True:
        try:
            return _try_connect(transfer, host, port, context)
        except OSError as err:
            transfer.check_continues()
            if transfer.clock.monotonic() + _PAUSE >= end:
                why = err.strerror or str(err)
                raise errors.BlockDeviceError(
                    f"no connection to {host} port {port} in {limit:.0f} s: {why}"
                ) from err
            transfer.wait(_PAUSE)


def _try_connect(transfer: Transfer, host: str, port: int, context: Any) -> TLSSocket:
    raw = socket.create_connection((host, port), timeout=_ATTEMPT)
    sock = TLSSocket(raw, context, server_side=False)
    transfer.socket = sock
    try:
        sock.settimeout(_ATTEMPT)
        sock.handshake()
        sock.settimeout(STALLED)
    except OSError:
        sock.close()
        raise
    return sock


def accept(transfer: Transfer, listener: socket.socket, context: Any, limit: float) -> TLSSocket:
    """The first connection whose certificate is good; others are sent away."""
    end = transfer.clock.monotonic() + limit
    with listener:
        while True:
            left = end - transfer.clock.monotonic()
            transfer.check_continues()
            if left <= 0:
                raise errors.BlockDeviceError(f"no sender came in {limit:.0f} s")
            listener.settimeout(left)
            try:
                raw, _peer = listener.accept()
            except TimeoutError:
                continue
            sock = TLSSocket(raw, context, server_side=True)
            try:
                sock.settimeout(min(_ATTEMPT, max(left, 1.0)))
                sock.handshake()
                sock.settimeout(STALLED)
            except OSError as err:
                log.warning("a sender of %s was sent away: %s", transfer.component, err)
                sock.close()
                continue
            return sock


def check_magic(sock: TLSSocket, magic: str | None) -> None:
    if magic is None:
        return
    wanted = _PREFIX + magic.encode()
    found = b""
    while len(found) < len(wanted):
        data = sock.recv(len(wanted) - len(found))
        if not data:
            raise errors.BlockDeviceError("the sender hung up before it said the magic word")
        found += data
    if not hmac.compare_digest(found, wanted):
        raise errors.BlockDeviceError("the sender does not know the magic word")


def receive(transfer: Transfer, sock: TLSSocket) -> Iterator[bytes | memoryview]:
    while data := sock.recv(streams.CHUNK):
        yield data
        transfer.add(len(data))
    if not sock.ended_in_order:
        raise errors.BlockDeviceError("the sender hung up in the middle")


def send(
    transfer: Transfer, sock: TLSSocket, source: streams.Source, opts: ImportExportOptions
) -> None:
    def count() -> Iterator[bytes | memoryview]:
        for data in source.chunks():
            yield data
            transfer.add(len(data))

    if opts.magic is not None:
        sock.sendall(_PREFIX + opts.magic.encode())
    try:
        for data in streams.pack(count(), opts.compress, transfer.children):
            sock.sendall(data)
        sock.finish_sending()
        sock.settimeout(_LAST_WRITES)
        while sock.recv(streams.CHUNK):
            pass
    except (BrokenPipeError, ConnectionResetError) as err:
        raise errors.BlockDeviceError("the receiver hung up in the middle") from err
    if not sock.ended_in_order:
        raise errors.BlockDeviceError("the receiver hung up without saying that it has all")
