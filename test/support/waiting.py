"""Waiting in tests for what no event tells; the one place of this test suite that polls."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds of a pause at most.
_LONGEST = 0.5


def wait_for(
    condition: Callable[[], object],
    what: str | Callable[[], str],
    timeout: float = 20,
    pause: float = 0.02,
) -> None:
    """Look every ``pause`` seconds until something is true that no event tells.

    A look that takes longer, such as a command, is followed by a longer pause: what is waited for
    needs the processor, too. For the state of another process, a log, or what an object keeps to
    itself. ``what`` says what did not come true within ``timeout`` seconds (a function: it is asked
    only then).
    """
    end = time.monotonic() + timeout
    while True:
        begun = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        if now >= end:
            said = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {timeout:g} s: {said}")
        time.sleep(
            max(pause, min(now - begun, _LONGEST))
        )  # the condition is one that no event tells
