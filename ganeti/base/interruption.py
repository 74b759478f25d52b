"""SIGTERM and SIGINT as requests to stop at the next good moment."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_requests(notice: Callable[[], object]) -> Iterator[list[int]]:
    """Yields a list that gets the number of each such signal; ``notice`` is called each time.

    For the main thread only. The handlers of before are restored at the end.
    """
    asked: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        notice()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
