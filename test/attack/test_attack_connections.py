"""Connections that say nothing, half, or nonsense, and that never read."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import threading
import time

import pytest
from arena import Arena, crowd, tcp, unix

MANY = 2000
#: Some that agree on TLS first: each costs both sides some milliseconds.
SOME = 200


def request(method: bytes, arguments: bytes) -> bytes:
    return b'{"method": "%s", "args": %s}\x03' % (method, arguments)


LUXI = {
    "idle": b"",
    "half_a_message": b'{"method": "Query',
    "garbage": os.urandom(64).replace(b"\x03", b"") + b"\x03",
    "waiting_for_events": request(b"WaitForEvents", b"[null, null, 60]"),
    "never_reading": request(b"QueryClusterInfo", b"[]") * 40,
}
TCP = {"silent": b"", "garbage": b"\x16\x03\x01\xff" + os.urandom(60)}


@pytest.mark.parametrize("kind", LUXI)
def test_luxi_2000_connections(arena: Arena, kind: str) -> None:
    luxi = unix(arena.cluster.paths().luxi_socket)
    with arena.check_served(), crowd(luxi, MANY, say=LUXI[kind]):
        arena.check()


@pytest.mark.parametrize("kind", TCP)
def test_rapi_2000_connections(arena: Arena, kind: str) -> None:
    with arena.check_served(), crowd(tcp((arena.rapi.host, arena.rapi.port)), MANY, say=TCP[kind]):
        arena.check()


@pytest.mark.parametrize("kind", TCP)
def test_noded_2000_connections(arena: Arena, kind: str) -> None:
    with arena.check_served(), crowd(tcp(arena.noded()), MANY, say=TCP[kind]):
        arena.check()


def test_rapi_tls_idle(arena: Arena) -> None:
    with arena.check_served(), crowd(lambda: arena.rapi.dial(arena.rapi.fresh_address()), SOME):
        arena.check()


def test_rapi_half_a_request_after_tls(arena: Arena) -> None:
    dial = lambda: arena.rapi.dial(arena.rapi.fresh_address())  # noqa: E731
    with arena.check_served(), crowd(dial, SOME, say=b"GET /2/info HTTP/1.1\r\nHost: "):
        arena.check()


def anonymous_tls(address: tuple[str, int]) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    raw = socket.create_connection(address, 5)
    try:
        return context.wrap_socket(raw)
    except BaseException:
        raw.close()
        raise


def test_noded_tls_idle_without_a_certificate(arena: Arena) -> None:
    with arena.check_served(), crowd(lambda: anonymous_tls(arena.noded()), SOME):
        arena.check()


def test_noded_flood_without_a_certificate(arena: Arena) -> None:
    """Four at once, as fast as they can, for some seconds; the log gets no tracebacks."""
    end = time.monotonic() + 8

    def flood() -> None:
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                sock = anonymous_tls(arena.noded())
                with sock:
                    sock.sendall(b"POST /version HTTP/1.1\r\nContent-Length: 2\r\n\r\n[]")
                    sock.recv(100)

    silent = crowd(tcp(arena.noded()), 600)
    with arena.check_served(), silent:
        threads = [threading.Thread(target=flood) for _ in range(4)]
        for thread in threads:
            thread.start()
        arena.check()
        for thread in threads:
            thread.join()


def test_luxi_connections_of_the_user_come_and_go(arena: Arena) -> None:
    """No thread and no descriptor is left of 2000 short ones."""
    path = arena.cluster.paths().luxi_socket
    with arena.check_served():
        for _ in range(MANY):
            sock = unix(path)()
            with sock, contextlib.suppress(OSError):
                sock.sendall(b"{")
