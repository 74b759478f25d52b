"""Talking to a running QEMU: a synchronous, bounded face of ``qemu.qmp`` (its only importer).

``qemu.qmp`` is asyncio. A :class:`Qmp` owns a private event loop that runs only inside its methods,
in the calling thread; no thread is made and :meth:`Qmp.close` leaves nothing behind. Import this
module where a connection is made: it brings in asyncio (60 ms), which most calls do not need.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from qemu.qmp import (
    ConnectError,
    EventListener,
    ExecInterruptedError,
    ExecuteError,
    Message,
    QMPClient,
    QMPError,
)

from ganeti import errors
from ganeti.base import retry
from ganeti.base.json_types import JsonObject

T = TypeVar("T")

#: Longest path that fits into the address of a Unix socket.
_MAX_SOCKET_PATH = 107

# Failures are raised here; the library would log each of them as well.
logging.getLogger("qemu.qmp").setLevel(logging.CRITICAL)


class QmpClosedError(errors.HypervisorError):
    """QEMU ended or closed the connection while it was being talked to."""

    @property
    def wire_name(self) -> str:
        return errors.HypervisorError.__name__


class _Client(QMPClient):
    """The library's client, which takes an event for the greeting, or for its first answer.

    QEMU switches events on before it answers the first command, so one may come in between, most of
    all while a migration ends. One that an earlier connection did not read any more may come first.
    """

    _negotiating = False

    async def _establish_session(self) -> None:
        self._negotiating = True
        try:
            await super()._establish_session()
        finally:
            self._negotiating = False

    async def _recv(self) -> Message:
        message = await super()._recv()
        while self._negotiating and "event" in message:
            message = await super()._recv()
        return message


class Qmp:
    """One connection; not for use by two threads at a time. Use :meth:`connect`."""

    def __init__(self, path: Path, sock: socket.socket, timeout: float) -> None:
        self.path = path
        self._timeout = timeout
        self._loop = asyncio.new_event_loop()
        self._client = _Client()
        self._sock = sock

    @classmethod
    def connect(cls, path: Path, timeout: float = 10.0) -> Qmp:
        """Connect to QEMU's socket and agree on capabilities; blocks ``timeout`` s at most.

        ``timeout`` is also the limit of each command. QEMU serves one connection at a time, so
        this waits while somebody else talks to the same socket. When QEMU closes the connection
        before it has greeted, another one is tried: it may have taken the end of the connection
        before for the end of this one.

        Raises:
            HypervisorError: no socket, nobody listens, no answer in time, or no QEMU there.
        """
        try:
            return cls._connect_once(path, timeout)
        except QmpClosedError:
            return cls._connect_once(path, timeout)

    @classmethod
    def _connect_once(cls, path: Path, timeout: float) -> Qmp:
        sock = connect_unix(path, timeout)
        try:
            qmp = cls(path, sock, timeout)
        except BaseException:  # an interrupt too: close the connection and raise it
            sock.close()
            raise
        try:
            qmp._call(qmp._connect(), "the greeting", timeout)
        except BaseException:  # an interrupt too: close the connection and raise it
            qmp.close()
            raise
        return qmp

    def command(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        timeout: float | None = None,
    ) -> Any:
        """Execute one command and return what it returns; blocks as long as connections may.

        Raises:
            HypervisorError: QEMU refused, with its words; or no answer in time.
            QmpClosedError: QEMU closed the connection before it answered.
        """
        return self._call(self._client.execute(name, arguments), name, timeout or self._timeout)

    def send_descriptor(self, fd: int, name: str) -> None:
        """Send QEMU a copy of a descriptor, which later commands call ``name``.

        Raises:
            HypervisorError: QEMU did not take it.
        """
        self._call(self._send_descriptor(fd, "getfd", {"fdname": name}), "getfd", self._timeout)

    def add_descriptor(self, fd: int) -> str:
        """Send QEMU a copy of a descriptor; returns the file name that stands for it in QEMU."""
        answer = self._call(self._send_descriptor(fd, "add-fd", None), "add-fd", self._timeout)
        return f"/dev/fdset/{answer['fdset-id']}"

    async def _send_descriptor(
        self, fd: int, name: str, arguments: Mapping[str, object] | None
    ) -> Any:
        self._client.send_fd_scm(fd)
        return await self._client.execute(name, arguments)

    async def _connect(self) -> None:
        try:
            await self._client.connect(self._sock)
        except AssertionError as err:
            # What the library makes of a QEMU that ends right after it has greeted.
            raise EOFError from err

    @contextlib.contextmanager
    def events(self, *names: str) -> Iterator[Events]:
        """Collect events of these names from now on."""
        with self._client.listener(names) as listener:
            yield Events(self, listener)

    def wait(self, work: Coroutine[object, object, T], timeout: float) -> T | None:
        """The result of some work on the loop, None when it took too long."""
        try:
            return self._loop.run_until_complete(asyncio.wait_for(work, timeout))
        except TimeoutError:
            return None

    def close(self) -> None:
        """End the connection and the loop; idempotent, raises nothing for a connection lost."""
        if self._loop.is_closed():
            return
        try:
            # A disconnect repeats the error that ended the connection, which was raised before.
            with contextlib.suppress(Exception):
                self._loop.run_until_complete(asyncio.wait_for(self._client.disconnect(), 5))
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    self._loop.run_until_complete(task)
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()
            self._sock.close()

    def __enter__(self) -> Qmp:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _call(self, work: Coroutine[object, object, T], what: str, timeout: float) -> T:
        try:
            return self._loop.run_until_complete(asyncio.wait_for(work, timeout))
        except TimeoutError as err:
            raise errors.HypervisorError(
                f"QEMU at {self.path} did not answer {what} in {timeout:g} s"
            ) from err
        except ExecuteError as err:
            raise errors.HypervisorError(f"QEMU refused {what}: {err}") from err
        except (ExecInterruptedError, EOFError, ConnectionError) as err:
            raise QmpClosedError(
                f"QEMU at {self.path} closed the connection before it answered {what}"
            ) from err
        except ConnectError as err:
            raise QmpClosedError(f"QEMU at {self.path} cannot be asked: {err}") from err
        except (QMPError, OSError) as err:
            raise errors.HypervisorError(f"QEMU at {self.path}, {what}: {err}") from err


class Events:
    """Events of a connection; see :meth:`Qmp.events`."""

    def __init__(self, qmp: Qmp, listener: EventListener) -> None:
        self._qmp = qmp
        self._listener = listener

    def wait_next(self, timeout: float) -> JsonObject | None:
        """The next event, None when there was none for so many seconds, or QEMU ended."""
        event = self._qmp.wait(self._listener.get(), timeout)
        return None if event is None else dict(event)


def connect_unix(path: Path, timeout: float) -> socket.socket:
    """A connected socket, also for a path that is too long for a socket address.

    The kernel takes 107 bytes; a longer path is reached through a descriptor of its directory.
    While too many others wait to be served, this waits as well.

    Raises:
        HypervisorError: no such socket, nobody listens, no permission, time-out.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    directory = -1
    try:
        sock.settimeout(timeout)
        address = os.fspath(path)
        if len(os.fsencode(address)) > _MAX_SOCKET_PATH:
            directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            address = f"/proc/self/fd/{directory}/{path.name}"
        if (
            retry.retry_until(lambda: _connect_socket(sock, address), timeout=timeout, largest=0.1)
            is None
        ):
            raise TimeoutError
        sock.setblocking(False)
    except OSError as err:
        sock.close()
        why = err.strerror or str(err)
        if isinstance(err, TimeoutError):
            why = f"it takes no further connection within {timeout:g} s"
        raise errors.HypervisorError(f"cannot connect to {path}: {why}") from err
    finally:
        if directory >= 0:
            os.close(directory)
    return sock


def _connect_socket(sock: socket.socket, address: str) -> bool | None:
    """None when the queue of the socket is full, which no event tells the end of."""
    try:
        sock.connect(address)
    except BlockingIOError:
        return None
    return True
