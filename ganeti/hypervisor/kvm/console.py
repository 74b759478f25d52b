"""A terminal on the serial console of a guest: ``python -m ganeti.hypervisor.kvm.console SOCKET``.

Runs on the node, started by ssh; uses the standard library only, so that it starts at once.
Ctrl-] ends it, and leaves the guest alone.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
import termios
import tty
from collections.abc import Iterator

#: Ctrl-], as telnet has it.
ESCAPE = b"\x1d"
_CHUNK = 65536
#: Typed bytes kept for a guest that does not read; more are dropped, as on a real line.
_BACKLOG = 65536


def main(argv: list[str]) -> int:
    """Exit status: 0 ended by the user or the guest, 1 no connection, 2 wrong call."""
    if len(argv) != 1:
        print("usage: python -m ganeti.hypervisor.kvm.console SOCKET", file=sys.stderr)
        return 2
    try:
        sock = _connect(argv[0])
    except OSError as err:
        print(
            f"cannot connect to {argv[0]}: {err.strerror}; does the instance run here?",
            file=sys.stderr,
        )
        return 1
    with contextlib.closing(sock), _set_raw(sys.stdin.fileno()) as terminal:
        if terminal:
            _say("Connected. Ctrl-] ends the connection.\r\n")
        copy(sock, sys.stdin.fileno(), sys.stdout.fileno())
        if terminal:
            _say("\r\nConnection ended.\r\n")
    return 0


def copy(sock: socket.socket, source: int, target: int) -> None:
    """Copy both ways until the escape character, the end of input, or the end of the guest.

    Input that the guest does not take never blocks the way out.
    """
    sock.setblocking(False)
    pending = b""
    while True:
        link = sock.fileno()
        writers = [link] if pending else []
        readable, writable, _ = select.select([link, source], writers, [])
        if link in readable:
            data = _receive(sock)
            if data == b"":
                return
            _write(target, data or b"")
        if source in readable:
            typed = os.read(source, _CHUNK)
            before, escape, _rest = typed.partition(ESCAPE)
            pending = (pending + before)[:_BACKLOG]
            if escape or not typed:
                _send(sock, pending)
                return
        if pending and (writable or source in readable):
            pending = pending[_send(sock, pending) :]


def _receive(sock: socket.socket) -> bytes | None:
    """Data, empty at the end, None when there is nothing after all."""
    try:
        return sock.recv(_CHUNK)
    except BlockingIOError:
        return None
    except ConnectionError:
        return b""


def _send(sock: socket.socket, data: bytes) -> int:
    try:
        return sock.send(data)
    except (BlockingIOError, ConnectionError):
        # A lost connection is seen by the next read.
        return 0


def _write(target: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]


def _connect(path: str) -> socket.socket:
    """Connect by a short name, as the full one may not fit into an address (107 bytes)."""
    directory, name = os.path.split(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if directory:
            os.chdir(directory)
        sock.connect(name)
    except OSError:
        sock.close()
        raise
    return sock


@contextlib.contextmanager
def _set_raw(fd: int) -> Iterator[bool]:
    """The terminal in raw mode, and back at the end; False when it is none."""
    if not os.isatty(fd):
        yield False
        return
    before = termios.tcgetattr(fd)
    try:
        tty.setraw(fd)
        yield True
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
