"""The master's term: a number that only grows, so that calls of an earlier master are refused.

The highest number this node has seen, and the node that claimed it, are in ``<data>/epoch``
(``<number> <name>``). Calls of a master carry their number; a lower one is refused.
"""

from __future__ import annotations

import threading

from ganeti import errors
from ganeti.base import files
from ganeti.paths import Paths
from ganeti.recovery import terms


class Term:
    """The terms that this node knows. Thread-safe; a new number is on disk before it counts."""

    def __init__(self, paths: Paths) -> None:
        self._path = paths.epoch_file
        self._lock = threading.Lock()
        self._known = self._read()

    def _read(self) -> terms.Term:
        try:
            number, _, name = files.read_text(self._path).strip().partition(" ")
        except FileNotFoundError:
            return terms.Term()
        if not number.isdigit():
            raise errors.ConfigurationError(
                f"{self._path} does not hold a number and a name; remove it if this node is to"
                " follow any master"
            )
        return terms.Term(int(number), name)

    def read_highest(self) -> tuple[int, str]:
        """The highest number, and the node that claimed it (empty when it was not told)."""
        with self._lock:
            return self._known.number, self._known.master

    def check(self, number: int, master: str = "") -> None:
        """Take note of the number of a call, and of the master that makes it if it is known.

        Raises:
            DeposedError: a newer master has taken over.
        """
        with self._lock:
            self._follow(self._known.hear(number, master), number)

    def claim(self, number: int, master: str, known: int | None = None) -> None:
        """Follow a new master from now on. Idempotent.

        Raises:
            DeposedError: the number is not higher than that of another master, or another one has
                claimed a term since this node said that it knows ``known``.
        """
        with self._lock:
            self._follow(self._known.claim(number, master, known), number)

    def _follow(self, term: terms.Term | None, number: int) -> None:
        """Have the term on disk; None: the call is refused."""
        if term is None:
            who = self._known.master or "another node"
            raise errors.DeposedError(
                f"{who} has become the master (term {self._known.number}, this call is of term"
                f" {number})"
            )
        if term != self._known:
            text = f"{term.number} {term.master}\n"
            files.write_atomic(self._path, text, mode=0o644)
            self._known = term
