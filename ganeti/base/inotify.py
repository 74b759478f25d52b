"""File watching; the only importer of pyinotify (unmaintained, hence behind one module).

On Python 3.12 and later pyinotify needs the package pyasyncore.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it imports asyncore
    import pyinotify

from ganeti import errors

_MASK = (
    pyinotify.IN_CLOSE_WRITE | pyinotify.IN_MOVED_TO | pyinotify.IN_DELETE | pyinotify.IN_MOVED_FROM
)
#: Events were lost or will not come any more.
_BLIND = pyinotify.IN_Q_OVERFLOW | pyinotify.IN_IGNORED

#: Given instead of a name when any file may have changed.
ANY_NAME = ""

log = logging.getLogger(__name__)


class DirectoryWatcher:
    """Calls ``on_change(name)`` for each file written, replaced or removed in a directory.

    The call comes from a thread of its own; errors it raises are logged, the watch continues.
    Files replaced by rename (the only way we write) are seen, as the directory is watched.
    The name is :data:`ANY_NAME` when the kernel had to drop events, a name is not UTF-8, or the
    directory itself was removed (then nothing more is seen).
    """

    def __init__(self, directory: Path, on_change: Callable[[str], None]) -> None:
        """Watch from now on; changes before :meth:`start` are reported then.

        Raises:
            InotifyError: the directory is missing, or the system allows no more watches.
        """
        self._directory = directory
        self._on_change = on_change
        self._lock = threading.Lock()
        self._notifier: _Notifier | None = None
        try:
            self._manager = pyinotify.WatchManager()
        except OSError as err:
            raise errors.InotifyError(f"cannot watch {directory}: {err}") from err
        watches = self._manager.add_watch(str(directory), _MASK)
        if watches.get(str(directory), -1) < 0:
            self._manager.close()
            raise errors.InotifyError(f"cannot watch {directory}: missing, or no watch is left")

    def start(self) -> None:
        with self._lock:
            self._notifier = _Notifier(self._manager, self._handle, self._report_lost_changes)
            self._notifier.name = f"inotify-{self._directory.name}"
            self._notifier.daemon = True
            self._notifier.start()

    def _handle(self, event: pyinotify.Event) -> None:
        self._report(ANY_NAME if event.mask & _BLIND else event.name)

    def _report_lost_changes(self, reason: Exception) -> None:
        log.warning("changes in %s were not understood: %s", self._directory, reason)
        self._report(ANY_NAME)

    def _report(self, name: str) -> None:
        try:
            self._on_change(name)
        except Exception:  # a thread's last frame: the watch must outlive one bad file
            log.exception("change of %s could not be handled", self._directory / name)

    def stop(self) -> None:
        """Stop watching and wait for the thread; not from ``on_change``. Idempotent."""
        with self._lock:
            manager, self._manager = self._manager, None
            if manager is None:
                return
            if self._notifier is None:
                manager.close()
            else:
                self._notifier.stop()


class _Notifier(pyinotify.ThreadedNotifier):  # type: ignore[misc]
    """Survives events that pyinotify cannot read, and does without ``Event.isSet``."""

    def __init__(
        self,
        manager: pyinotify.WatchManager,
        handle: Callable[[pyinotify.Event], None],
        lost: Callable[[Exception], None],
    ) -> None:
        super().__init__(manager, handle)
        self._lost = lost

    def loop(self) -> None:
        # As in the library, whose own loop calls what newer Pythons warn of.
        while not self._stop_event.is_set():
            self.process_events()
            if self.check_events():
                self.read_events()

    def read_events(self) -> None:
        try:
            super().read_events()
        except (ValueError, pyinotify.NotifierError) as err:
            self._lost(err)
