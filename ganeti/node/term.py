"""The master's term: a number that only grows, so that calls of an earlier master are refused.

The highest number this node has seen, and the node that claimed it, are in ``<data>/epoch``
(``<number> <name>``). Calls of a master carry their number; a lower one is refused.
"""

from __future__ import annotations

import threading

from ganeti import errors
from ganeti.base import files
from ganeti.paths import Paths


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

    def read_highest(self) -> tuple[int, str]:
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
                raise self._make_deposed_error(number)
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
                raise self._make_deposed_error(number)
            if (number, master) != known:
                self._store(number, master)

    def _store(self, number: int, master: str) -> None:
        files.write_atomic(self._path, f"{number} {master}\n", mode=0o644)
        self._number, self._master = number, master

    def _make_deposed_error(self, number: int) -> errors.DeposedError:
        who = self._master or "another node"
        return errors.DeposedError(
            f"{who} has become the master (term {self._number}, this call is of term {number})"
        )
