"""The HTTP server for guests, which may send anything, slowly, and as often as they like.

One thread, and no connection is served twice. A guest has a few connections at a time, each with a
few seconds and a few kilobytes, so that none keeps others from being answered. The
client is identified before a byte is read, and never by its request.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

from ganeti import constants, errors
from ganeti.metad import answers, origin
from ganeti.metad.answers import Answer
from ganeti.net.unix_socket import TERMINATOR, frame

log = logging.getLogger(__name__)

#: Bytes of a request head, seconds for the request and for taking the answer.
MAX_HEAD, ARRIVAL, DELIVERY = 8192, 5.0, 60.0
#: Connections of one guest, and of all.
PER_GUEST, CONNECTIONS = 4, 256
_LINE = re.compile(rb"([A-Z]{1,16}) ([!-~]{1,2048}) HTTP/1\.[01]\r?\n")
#: Bytes of a message on the Unix socket.
MAX_MESSAGE: Final = 2 * 1024 * 1024
_END: Final = b"\r\n\r\n"
_START_WAIT = 10.0

#: Address of a connection's guest, None for a stranger; OSError.
FindGuest = Callable[[socket.socket], str | None]
#: Address and path to an answer.
Respond = Callable[[str, str], Answer]
#: A message of a program of this node to its answer.
Control = Callable[[bytes], bytes]


class GuestServer:
    """Serves in a thread of its own until :meth:`stop`."""

    def __init__(
        self,
        address: tuple[str, int],
        respond: Respond,
        find_guest: FindGuest = origin.find_guest,
        control: tuple[socket.socket, Control] | None = None,
    ) -> None:
        """``control``: a Unix socket that listens, and what answers the messages on it."""
        self._address = address
        self._control = control
        self._respond = respond
        self._find_guest = find_guest
        self._open: Counter[str] = Counter()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metad-http", daemon=True)
        self.port = address[1]

    def start(self) -> int:
        """Listen and serve; returns the port.

        Raises:
            GenericError: the address cannot be used.
        """
        try:
            self._socket = _listen(self._address)
        except OSError as err:
            self._loop.close()
            host, port = self._address
            raise errors.GenericError(f"cannot listen on {host}:{port}: {err.strerror}") from err
        self.port = int(self._socket.getsockname()[1])
        self._thread.start()
        if not self._ready.wait(_START_WAIT):
            raise errors.GenericError("the server does not start; see its log")
        return self.port

    def stop(self) -> None:
        """Close the door and all connections."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._handle, sock=self._socket, limit=MAX_HEAD)
        servers = [server]
        if self._control is not None:
            sock, answer = self._control
            serve = partial(_serve_node, answer)
            servers.append(await asyncio.start_unix_server(serve, sock=sock, limit=MAX_MESSAGE))
        self._ready.set()
        await self._stop.wait()
        # What is still open ends with the loop.
        for each in servers:
            each.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        guest = self._identify(writer)
        key = guest or ""
        self._open[key] += 1
        try:
            if self._open[key] <= PER_GUEST and self._open.total() <= CONNECTIONS:
                await _talk(reader, writer, guest, self._respond)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as err:
            log.debug("a connection of %s ended early: %s", guest or "a stranger", err)
        except Exception:  # one guest must not end the service for the others
            log.exception("A bug spoiled an answer to %s", guest or "a stranger")
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _identify(self, writer: asyncio.StreamWriter) -> str | None:
        # asyncio hides the socket itself; another one of the same connection is closed again.
        with socket.socket(fileno=socket.dup(writer.get_extra_info("socket").fileno())) as sock:
            try:
                return self._find_guest(sock)
            except OSError as err:
                log.debug("it is not known who connected: %s", err)
                return None


async def _serve_node(
    answer: Control, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer messages of root of this node until it hangs up."""
    try:
        while True:
            message = await reader.readuntil(TERMINATOR)
            writer.write(frame(answer(message[:-1])))
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        # The end, or a message that is none.
        pass
    finally:
        writer.close()


async def _talk(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    guest: str | None,
    respond: Respond,
) -> None:
    """One request and its answer; IncompleteReadError, TimeoutError, OSError."""
    method = ""
    try:
        async with asyncio.timeout(ARRIVAL):
            head = await reader.readuntil(_END)
            found = _LINE.match(head)
            if found is None:
                raise _Refusal(400, "this is not a request of HTTP/1.1")
            method, path = found[1].decode(), found[2].decode().partition("?")[0]
        answer = _answer(guest, method, path, respond)
    except asyncio.LimitOverrunError:
        answer = answers.refuse(431, f"the head of a request has at most {MAX_HEAD} bytes")
    except TimeoutError:
        answer = answers.refuse(408, f"the request did not come in within {ARRIVAL:g} seconds")
    except _Refusal as err:
        answer = answers.refuse(err.code, err.text)
    async with asyncio.timeout(DELIVERY):
        writer.write(_encode(answer, with_body=method != "HEAD"))
        await writer.drain()


class _Refusal(Exception):
    def __init__(self, code: int, text: str) -> None:
        self.code, self.text = code, text


def _answer(guest: str | None, method: str, path: str, respond: Respond) -> Answer:
    if guest is None:
        return answers.refuse(403, "only guests of this node are served, over their own network")
    if method not in ("GET", "HEAD"):
        return answers.refuse(405, "only GET is possible here", Allow="GET, HEAD")
    return respond(guest, path)


def _encode(answer: Answer, *, with_body: bool) -> bytes:
    headers = {
        "Server": f"Ganeti {constants.RELEASE_VERSION}",
        "Content-Type": answer.kind,
        "Content-Length": str(len(answer.body)),
        "Cache-Control": "no-store",
        "Connection": "close",
        **answer.headers,
    }
    lines = [f"HTTP/1.1 {answer.code} {answers.REASONS[answer.code]}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join((*lines, "", "")).encode("ascii")
    return head + answer.body if with_body else head


def _listen(address: tuple[str, int]) -> socket.socket:
    """A socket on an address that need not be there yet: it comes with the first guest."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_IP, origin.IP_FREEBIND, 1)
        sock.bind(address)
        sock.listen(128)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock
