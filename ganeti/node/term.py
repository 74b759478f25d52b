"""The master's term: a number that only grows, so that a deposed master can do no harm.

The highest number this node has seen, and the node that claimed it, are in ``<data>/epoch``
(``<number> <name>``). Calls of a master carry their number; a lower one is refused.
"""

from __future__ import annotations

import os
import threading

from ganeti import errors
from ganeti.base import files
from ganeti.paths import Paths

#: How new a copy of the state is: the term of the master that wrote it, and a number that grows
#: with every write of that master. Of two copies the one with the larger has all of the other.
Position = tuple[int, int]


#: Third word of the file on the node whose master made the state.
_OWN = "own"


def read_position(paths: Paths) -> Position:
    """Position of the state on this node; (0, 0) when it is not known."""
    return _read(paths)[0]


def made_here(paths: Paths) -> bool:
    """Whether the state was made by a master on this node.

    Then no copy has more of that term, whatever the numbers say: they are not flushed.
    """
    return _read(paths)[1]


def _read(paths: Paths) -> tuple[Position, bool]:
    try:
        words = files.read_text(paths.position_file).split()
    except FileNotFoundError:
        return (0, 0), False
    if len(words) < 2 or not all(word.isdigit() for word in words[:2]):
        return (0, 0), False
    return (int(words[0]), int(words[1])), words[2:] == [_OWN]


def position_text(position: Position, *, own: bool) -> str:
    """Content of the file; always as long for the same owner, so that it can be overwritten."""
    return f"{position[0]:020d} {position[1]:020d}{f' {_OWN}' if own else ''}\n"


def write_position(paths: Paths, position: Position, *, own: bool = False) -> None:
    """Note how new the state is; call it when the state is on disk.

    Only a new term is flushed: a number lost in a power cut makes the copy look older than it is,
    which is safe.
    """
    old, was_own = _read(paths)
    if position <= old:
        return
    text = position_text(position, own=own)
    if position[0] != old[0] or own != was_own:
        files.write_atomic(paths.position_file, text, mode=0o644)
        return
    fd = os.open(paths.position_file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(fd, text.encode("ascii"), 0)
    finally:
        os.close(fd)


class Term:
    """What this node knows of terms. Thread-safe; a new number is on disk before it counts."""

    def __init__(self, paths: Paths) -> None:
        self._path = paths.epoch_file
        self._lock = threading.Lock()
        self._number, self._master = self._read()

    def _read(self) -> tuple[int, str]:
        try:
            number, _, name = files.read_text(self._path).strip().partition(" ")
        except FileNotFoundError:
            return 0, ""
        if not number.isdigit():
            raise errors.ConfigurationError(
                f"{self._path} does not hold a number and a name; remove it if this node is to"
                " follow any master"
            )
        return int(number), name

    def seen(self) -> tuple[int, str]:
        """The highest number, and the node that claimed it (empty when it was not told)."""
        with self._lock:
            return self._number, self._master

    def check(self, number: int, master: str = "") -> None:
        """Take note of the number of a call, and of the master that makes it if it is known.

        Raises:
            DeposedError: a newer master has taken over.
        """
        with self._lock:
            other = master and self._master and master != self._master
            if number < self._number or (number == self._number and other):
                raise self._deposed(number)
            if number > self._number or (master and not self._master):
                self._store(number, master)

    def claim(self, number: int, master: str) -> None:
        """Follow a new master from now on. Idempotent.

        Raises:
            DeposedError: the number is not higher than that of another master.
        """
        with self._lock:
            known = self._number, self._master
            if number < known[0] or (number == known[0] and known[1] not in ("", master)):
                raise self._deposed(number)
            if (number, master) != known:
                self._store(number, master)

    def _store(self, number: int, master: str) -> None:
        files.write_atomic(self._path, f"{number} {master}\n", mode=0o644)
        self._number, self._master = number, master

    def _deposed(self, number: int) -> errors.DeposedError:
        who = self._master or "another node"
        return errors.DeposedError(
            f"{who} has become the master (term {self._number}, this call is of term {number})"
        )
