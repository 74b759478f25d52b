"""Running restic and borg: what they say, what they are fed with, and what they write.

A program that hangs, as at a network that fails, does not keep us: ``look`` is called every second
and may raise, which ends the program.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO

from ganeti import errors
from ganeti.backup.definition import Definition
from ganeti.backup.programs import explain
from ganeti.backup.repository import Look
from ganeti.base import process

#: Seconds between two calls of ``look``, and until a program that shall end is killed.
_LOOK, _END = 1.0, 20.0
#: Bytes that are read of a pipe at a time.
_PART = 1 << 20


class Child:
    """A program with a pipe to or from it."""

    def __init__(self, definition: Definition, argv: Sequence[str], look: Look) -> None:
        """Start it.

        Raises:
            GenericError: it is not installed.
        """
        self._definition, self._look = definition, look
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed by close()
        try:
            self._child = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env=dict(definition.environment),
                start_new_session=True,
            )
        except OSError as err:
            self._stderr.close()
            program = definition.program.name
            raise errors.GenericError(
                f"cannot run {program}: {err.strerror}; install it on this node: apt-get install"
                f" {definition.program.package}"
            ) from err
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._in, self._out = self._child.stdin, self._child.stdout
        os.set_blocking(self._in.fileno(), False)

    # its pipes

    def write(self, data: bytes) -> None:
        """Feed it; GenericError with its words when it takes no more."""
        view = memoryview(data)
        while view:
            self._await(self._in.fileno(), select.POLLOUT)
            try:
                view = view[os.write(self._in.fileno(), view) :]
            except BrokenPipeError:
                self.end()
                raise self._failure() from None
            except BlockingIOError:
                continue

    def read(self, size: int) -> bytes:
        """So many bytes, fewer only at its end; GenericError when it failed."""
        self._close_input()
        found = bytearray()
        while len(found) < size:
            self._await(self._out.fileno(), select.POLLIN)
            part = os.read(self._out.fileno(), min(_PART, size - len(found)))
            if not part:
                self.end()
                break
            found += part
        return bytes(found)

    def read_all(self) -> bytes:
        """All that it writes."""
        parts = []
        while part := self.read(_PART):
            parts.append(part)
        return b"".join(parts)

    def end(self) -> None:
        """It gets no more; wait for its good end.

        Raises:
            GenericError: it failed; the text has its last words, and what to do.
        """
        self._close_input()
        pid = os.pidfd_open(self._child.pid) if self._child.returncode is None else None
        if pid is not None:
            try:
                self._await(pid, select.POLLIN)
            finally:
                os.close(pid)
        if self._child.wait():
            raise self._failure()

    def _await(self, fd: int, event: int) -> None:
        poller = select.poll()
        poller.register(fd, event)
        while not poller.poll(_LOOK * 1000):
            self._look()

    def _failure(self) -> errors.GenericError:
        known = self._definition
        text = explain(known.program.name, self.read_said(), known.file)
        return errors.GenericError(f"repository {known.name}: {text}")

    def read_said(self) -> str:
        """The messages of the program."""
        self._stderr.seek(0)
        return self._stderr.read(1 << 16).decode("utf-8", "replace")

    # its end

    def _close_input(self) -> None:
        with contextlib.suppress(OSError):
            self._in.close()

    def close(self) -> None:
        """End it, when it still runs, before it sees the end of its input."""
        if self._child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, self._definition.program.stop)
            try:
                self._child.wait(_END)
            except subprocess.TimeoutExpired:
                process.kill_group(self._child.pid)
                self._child.wait()
        self._close_input()
        self._out.close()
        self._stderr.close()


@contextlib.contextmanager
def start(definition: Definition, argv: Sequence[str], look: Look) -> Iterator[Child]:
    """A program that has ended when the context does."""
    child = Child(definition, argv, look)
    try:
        yield child
    finally:
        child.close()
