"""One end of the transfer of a dump: its thread, its progress, and how it ends.

Every transfer is a thread of this daemon and ends with it. A master follows both ends; a transfer
that nobody asks about for five minutes ends.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import socket
import threading
from collections.abc import Callable

import msgspec

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.net.tls.stream import TLSSocket
from ganeti.node import streams
from ganeti.node.context import NodeContext
from ganeti.rpc.objects import ImportExportStatus

log = logging.getLogger(__name__)

#: Seconds that a question waits for news, and after which a transfer nobody asks about ends.
_PATIENCE, ABANDONED = 2.0, 300.0
_MIB = 1024 * 1024


class Transfer:
    """One end of a transfer, its thread, and the state that a master sees."""

    def __init__(self, name: str, component: str, context: NodeContext) -> None:
        self.name = name
        self.component = component
        self.children = streams.Children()
        self._context = context
        self.clock = context.clock
        self._changed = threading.Condition()
        self._news = True
        self._asked = self._begun = self.clock.monotonic()
        self._moved = 0.0
        self._done = 0
        self._size: Callable[[], int | None] = lambda: None
        self._aborted = threading.Event()
        self._thread: threading.Thread | None = None
        self.socket: TLSSocket | socket.socket | None = None
        now = self.clock.now()
        self.status = ImportExportStatus(ctime=now, mtime=now)

    def begin(self, work: Callable[[Transfer], None]) -> None:
        self._thread = threading.Thread(
            target=contextvars.copy_context().run,
            args=(self._run, work),
            name=f"transfer {self.component}",
            daemon=True,
        )
        self._thread.start()

    def _run(self, work: Callable[[Transfer], None]) -> None:
        error: str | None = "it ended early"
        try:
            work(self)
            error = None
        except errors.GanetiError as err:
            error = errors.text(err)
        except OSError as err:
            error = err.strerror or str(err) or type(err).__name__
        except Exception as err:  # a defect, too, is reported to the master that asks
            log.exception("transfer %s ended by a defect", self.name)
            error = f"internal error: {err!r}"
        finally:
            self.children.end()
            self._close(in_order=error is None)
        if error is not None and self._aborted.is_set():
            error = "it was ended early"
        if error is not None:
            log.warning("transfer of %s: %s", self.component, error)
        with self._changed:
            self.status.error_message = error
            self.status.exit_status = 0 if error is None else 1
            self._note_change()

    def _close(self, *, in_order: bool) -> None:
        """Close the connection; without close_notify when it is not complete."""
        if self.socket is None:
            return
        if not in_order:
            self._cut()
        with contextlib.suppress(OSError):
            self.socket.close()

    def _cut(self) -> None:
        if self.socket is not None:
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)

    def _note_change(self) -> None:
        self._news = True
        self.status.mtime = self.clock.now()
        self._changed.notify_all()

    # what the work says

    def note_connected(self, size: Callable[[], int | None]) -> None:
        with self._changed:
            self.status.connected = True
            self._begun = self.clock.monotonic()
            self._size = size
            self._note_change()

    def add(self, count: int) -> None:
        """So many bytes more are done; BlockDeviceError when the transfer is to end."""
        self._done += count
        self.check_continues()

    def check_continues(self) -> None:
        """Refuse to continue when it was ended, or the master does not ask; BlockDeviceError."""
        if self._aborted.is_set():
            raise errors.BlockDeviceError("it was ended early")
        if self._context.stopping.is_set():
            raise errors.BlockDeviceError("the node daemon stops")
        if self.is_abandoned:
            raise errors.BlockDeviceError(f"the master has not asked for {ABANDONED:.0f} s")

    def wait(self, seconds: float) -> None:
        """Wait, but not longer than until it is ended early."""
        self._aborted.wait(seconds)

    # what the master asks

    @property
    def is_abandoned(self) -> bool:
        return self.clock.monotonic() - self._asked > ABANDONED

    @property
    def has_ended(self) -> bool:
        return self.status.exit_status is not None

    def report(self) -> ImportExportStatus:
        """The status; waits for news, as far as there was none since the last question."""
        self._asked = self.clock.monotonic()
        with self._changed:
            self._changed.wait_for(lambda: self._news or self.has_ended, _PATIENCE)
            self._news = False
            return msgspec.structs.replace(self.status, **self._progress())

    def _progress(self) -> JsonObject:
        if not self.status.connected:
            return {}
        elapsed = max(self.clock.monotonic() - self._begun, 0.001)
        rate = self._done / _MIB / elapsed
        found: JsonObject = {
            "progress_mbytes": self._done / _MIB,
            "progress_throughput": rate,
        }
        size = self._size()
        if size:
            left = max(size - self._done, 0)
            found["progress_percent"] = min(100.0, 100.0 * self._done / size)
            if rate:
                found["progress_eta"] = left / _MIB / rate
        return found

    def abort(self) -> None:
        """End it, and wait until it has ended (a few seconds)."""
        self._aborted.set()
        self.children.kill()
        self._cut()
        if self._thread is not None:
            self._thread.join(10.0)
