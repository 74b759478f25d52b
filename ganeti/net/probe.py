"""Which TCP ports answer, tried side by side."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from ganeti.base.clock import SYSTEM, Clock
from ganeti.net import resolve

#: Seconds in which a TCP connection must be established.
PROBE_TIMEOUT = 5.0
#: Connections that are tried at the same time.
_BATCH = 128


@dataclass(frozen=True)
class Target:
    """A TCP port to try, optionally from one of this node's addresses."""

    host: str
    port: int
    source: str | None = None


def find_unreachable(
    targets: Sequence[Target], timeout: float = PROBE_TIMEOUT, *, clock: Clock = SYSTEM
) -> dict[Target, OSError]:
    """Which TCP ports cannot be connected to, and why.

    All are tried at the same time (in batches of 128), so it blocks ``timeout`` seconds per
    batch at most.
    """
    failed: dict[Target, OSError] = {}
    for start in range(0, len(targets), _BATCH):
        failed.update(_try_batch(targets[start : start + _BATCH], timeout, clock))
    return failed


def _try_batch(targets: Sequence[Target], timeout: float, clock: Clock) -> dict[Target, OSError]:
    failed: dict[Target, OSError] = {}
    with contextlib.ExitStack() as stack:
        waiting: dict[int, tuple[Target, socket.socket]] = {}
        poller = select.poll()
        for target in targets:
            try:
                sock = stack.enter_context(_begin(target))
            except OSError as err:
                failed[target] = err
                continue
            waiting[sock.fileno()] = (target, sock)
            poller.register(sock.fileno(), select.POLLOUT)
        end = clock.monotonic() + timeout
        while waiting and (left := end - clock.monotonic()) > 0:
            for fd, _event in poller.poll(left * 1000):
                target, sock = waiting.pop(fd)
                poller.unregister(fd)
                if code := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    failed[target] = OSError(code, os.strerror(code))
        for target, _sock in waiting.values():
            failed[target] = TimeoutError(errno.ETIMEDOUT, f"no answer within {timeout:g} s")
    return failed


def _begin(target: Target) -> socket.socket:
    if not resolve.is_address(target.host):
        # A name would have to be looked up, which may block.
        raise OSError(errno.EINVAL, "is not an IP address")
    sock = socket.socket(resolve.family(target.host), socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        if target.source is not None:
            sock.bind((target.source, 0))
        code = sock.connect_ex((target.host, target.port))
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))
    except BaseException:  # an interrupt too: close the socket and raise it
        sock.close()
        raise
    return sock
