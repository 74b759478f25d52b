"""A thread that mostly waits: for a change, or for a time."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod


class WaitingThread(ABC):
    """Base of classes with one thread of their own.

    ``_changed`` guards what the thread shares with others. The thread waits on it, and returns from
    :meth:`_work` soon after ``_stopped`` is true.
    """

    #: seconds for which :meth:`stop` waits for work that hangs
    _STOP_WAIT = 1.0

    def __init__(self, name: str) -> None:
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    @abstractmethod
    def _work(self) -> None:
        """Do the work of the thread until it is stopped."""

    def start(self) -> None:
        """Start the thread, once."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; work that hangs is not waited for. Idempotent."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(self._STOP_WAIT)

    def _wake(self) -> None:
        """Have the thread check again what it waits for."""
        with self._changed:
            self._changed.notify_all()
