"""Equal questions that are asked at the same time share one round to the nodes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")

#: Seconds to wait for the end of a round that is under way before another one begins beside it.
PATIENCE = 1.0


class _Round:
    """One round; ``done`` is set when ``result`` or ``error`` is there."""

    def __init__(self) -> None:
        self.begun = False
        self.done = threading.Event()
        self.result: object = None
        self.error: BaseException | None = None


class Rounds:
    """Shares rounds by key. Thread-safe.

    Nobody gets an answer that is older than the question: a round that has begun is joined by
    nobody. Callers that come meanwhile wait for its end (``PATIENCE`` seconds at most, as a dead
    node makes it long). Then one of them makes the next round for all of them. So however many
    ask, hardly more than one round is under way.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: dict[Hashable, _Round] = {}

    def share(self, key: Hashable, work: Callable[[], T]) -> T:
        """Return or raise the outcome of ``work``, called by this thread or another one for us.

        The result is shared: nobody may change it. Blocks as long as ``work``, and up to
        ``PATIENCE`` seconds more.
        """
        with self._lock:
            latest = self._latest.get(key)
            own = None if latest is not None and not latest.begun else _Round()
            if own is not None:
                self._latest[key] = own
        if own is None:
            assert latest is not None
            latest.done.wait()
            joined: T = self._outcome(latest)
            return joined
        if latest is not None:
            latest.done.wait(PATIENCE)
        with self._lock:
            own.begun = True
        try:
            made = own.result = work()
        except BaseException as err:  # an interrupt too: raise it for all that wait
            own.error = err
            raise
        finally:
            with self._lock:
                if self._latest.get(key) is own:
                    del self._latest[key]
            own.done.set()
        return made

    @staticmethod
    def _outcome(finished: _Round) -> Any:
        if finished.error is not None:
            raise finished.error
        return finished.result
