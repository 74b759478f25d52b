"""Copies of disks that go on in threads of this daemon while the master asks how far they are."""

from __future__ import annotations

import contextvars
import logging
import secrets
import threading
from collections.abc import Callable

from ganeti import errors
from ganeti.base.clock import Clock
from ganeti.node.context import NodeContext
from ganeti.rpc.calls.copying import CopyCalls
from ganeti.rpc.objects import CopyStatus

log = logging.getLogger(__name__)

#: Longest time that a question waits for the end, and for which nobody may ask: the master is
#: gone then, and the copy ends.
_PATIENCE = 2.0
ABANDONED = 300.0


class Progress:
    """How far one copy is, and whether it may go on."""

    def __init__(self, clock: Clock, stopping: threading.Event, term: int = 0) -> None:
        self._clock = clock
        self._stopping = stopping
        #: of the master that began the copy
        self.term = term
        self._asked = clock.monotonic()
        #: bytes: of all the content, arrived, and of those the zeros that were not sent
        self.size = self.done = self.zeros = 0

    def note_request(self) -> None:
        self._asked = self._clock.monotonic()

    @property
    def is_abandoned(self) -> bool:
        return self._clock.monotonic() - self._asked > ABANDONED

    def add(self, size: int, *, zeros: bool = False) -> None:
        """So many bytes more are done.

        Raises:
            BlockDeviceError: the daemon stops, or the master asks no more.
        """
        self.done += size
        if zeros:
            self.zeros += size
        self._check()

    def set(self, done: int, size: int) -> None:
        """So many bytes of so many are done; raises what :meth:`add` raises."""
        self.done, self.size = done, size
        self._check()

    def _check(self) -> None:
        if self._stopping.is_set():
            raise errors.BlockDeviceError("copying ended early: the node daemon stops")
        if self.is_abandoned:
            raise errors.BlockDeviceError(
                f"copying ended early: the master has not asked for {ABANDONED:.0f} s"
            )


class _Copy:
    """One copy and its thread."""

    def __init__(self, progress: Progress, work: Callable[[Progress], object]) -> None:
        self.progress = progress
        self._work = work
        self._error: errors.GanetiError | None = None
        #: what the work has returned
        self.result: object = None
        # What it logs is about the job of the call that began it.
        work_on = contextvars.copy_context().run
        self._thread = threading.Thread(
            target=work_on, args=(self._run,), name="disk-copy", daemon=True
        )
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._work(self.progress)
        except errors.GanetiError as err:
            log.warning("%s", errors.text(err))
            self._error = err
        except Exception as err:  # a defect, too, is reported to the master that asks
            log.exception("a copy of a disk ended by a defect")
            self._error = errors.BlockDeviceError(f"copying failed: internal error: {err!r}")

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def status(self) -> CopyStatus:
        self.progress.note_request()
        self._thread.join(_PATIENCE)
        ended = self.has_ended
        if self._error is not None:
            raise self._error
        found = self.progress
        return CopyStatus(size=found.size, done=found.done, zeros=found.zeros, ended=ended)


class Copies(CopyCalls):
    """All copies of this node daemon, by the names that the master has for them."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._copies: dict[str, _Copy] = {}

    def begin(self, work: Callable[[Progress], object]) -> str:
        """Begin to copy and return the name of the copy; ``work`` raises GanetiError on failure."""
        name = secrets.token_hex(8)
        with self._lock:
            for old, known in list(self._copies.items()):
                if known.has_ended and known.progress.is_abandoned:
                    del self._copies[old]
            term, _master = self._context.term.read_highest()
            progress = Progress(self._context.clock, self._context.stopping, term)
            self._copies[name] = _Copy(progress, work)
        return name

    def take_result(self, copy: str) -> object:
        """Return the result of a copy that has ended, once; None when it is lost."""
        with self._lock:
            found = self._copies.get(copy)
            if found is None:
                return None
            result, found.result = found.result, None
            return result

    def copy_status(self, copy: str) -> CopyStatus:
        """How far a copy is; waits up to 2 s for its end.

        Raises:
            BlockDeviceError: it failed, or it is not known here.
        """
        with self._lock:
            found = self._copies.get(copy)
        if found is None:
            raise errors.BlockDeviceError(
                "the copy is not known: the node daemon was restarted, which ends all copies"
            )
        return found.status()
