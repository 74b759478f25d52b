"""Everything that is said beside the results: to standard error, and questions to a person."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

#: Names shown at once when many are to be confirmed.
LONG_LIST = 20


def say(text: str) -> None:
    """A line on standard error."""
    sys.stdout.flush()
    print(text, file=sys.stderr)


def warn(text: str) -> None:
    """A warning on standard error."""
    say(f"Warning: {text}")


def connection_lost(reason: str) -> None:
    """Tell that the master daemon went away while we asked something."""
    StatusLine.clear_current()
    say(f"{reason.rstrip('.')}. Trying to reach the master daemon again")


class StatusLine:
    """A line at the bottom of a terminal that is replaced again and again.

    Without a terminal (standard output or error goes elsewhere) nothing is written at all.
    """

    _current: StatusLine | None = None

    def __init__(self) -> None:
        self._on = sys.stderr.isatty() and sys.stdout.isatty()
        self._shown = False

    def show(self, text: str) -> None:
        """Replace the line."""
        if not self._on:
            return
        StatusLine._current = self
        sys.stderr.write(f"\r{text}\x1b[K")
        sys.stderr.flush()
        self._shown = True

    def clear(self) -> None:
        """Remove the line, so that something else can be written."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False

    @classmethod
    def clear_current(cls) -> None:
        """Remove the line that is shown now, if any."""
        if cls._current is not None:
            cls._current.clear()


def confirm(question: str, details: Sequence[str] = (), *, option: str) -> bool:
    """Ask a person; an empty answer is a no, and so is no terminal to ask at, which is said.

    ``details`` are shown before the question, or on request when there are many; ``option`` is
    the one that answers yes.
    """
    try:
        fd = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        say(f"{question}\nThere is no terminal to ask at, so nothing is done; {option} answers yes")
        return False
    with os.fdopen(fd, "r+b", buffering=0) as terminal:
        return ask(
            question,
            details,
            read=lambda: terminal.readline().decode("utf-8", "replace"),
            write=lambda text: terminal.write(text.encode("utf-8")),
        )


def ask(
    question: str,
    details: Sequence[str],
    *,
    read: Callable[[], str],
    write: Callable[[str], object],
) -> bool:
    """Ask until the answer is y, n or nothing; v shows the details."""
    view = len(details) > LONG_LIST
    if details and not view:
        write("".join(f"  {item}\n" for item in details))
    choices = "y/[n]/v" if view else "y/[n]"
    while True:
        write(f"{question}\n{choices}: ")
        line = read()
        answer = line.strip().lower()
        if not line or answer in ("", "n", "no"):
            return False
        if answer in ("y", "yes"):
            return True
        if view and answer == "v":
            write("".join(f"  {item}\n" for item in details))
        else:
            hint = ", v to see the list" if view else ""
            write(f"Please answer y for yes or n for no{hint}\n")
