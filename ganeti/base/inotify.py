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
    pyinotify.IN_CLOSE_WRITE
    | pyinotify.IN_MOVED_TO
    | pyinotify.IN_DELETE
    | pyinotify.IN_MOVED_FROM
)


class DirectoryWatcher:
    """Calls ``on_change(name)`` for each file written, replaced or removed in a directory.

    The call comes from a thread of its own; errors it raises are logged, the watch goes on.
    Files replaced by rename (the only way we write) are seen, as the directory is watched.
    """

    def __init__(self, directory: Path, on_change: Callable[[str], None]) -> None:
        self._on_change = on_change
        self._manager = pyinotify.WatchManager()
        self._notifier = pyinotify.ThreadedNotifier(self._manager, self._handle)
        self._notifier.name = f"inotify-{directory.name}"
        self._notifier.daemon = True
        watches = self._manager.add_watch(str(directory), _MASK)
        if watches.get(str(directory), -1) < 0:
            self._manager.close()
            raise errors.InotifyError(f"cannot watch {directory}: missing, or no watch is left")
        self._lock = threading.Lock()
        self._running = False

    def start(self) -> None:
        with self._lock:
            self._running = True
            self._notifier.start()

    def _handle(self, event: pyinotify.Event) -> None:
        try:
            self._on_change(event.name)
        except Exception:  # a thread's last frame: the watch must outlive one bad file
            logging.exception("change of %s could not be handled", event.pathname)

    def stop(self) -> None:
        """Stop watching and wait for the thread. Idempotent."""
        with self._lock:
            if not self._running:
                return
            self._running = False
            self._notifier.stop()
