"""Copies of the master's state on other nodes, as the state itself sees them.

The parts of the state say what changed; who gets it and how is the business of the daemon.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ganeti.base.file_parts import Contents


class Round(Protocol):
    """Something that is on its way to the copies."""

    def wait(self) -> None:
        """Block until enough copies have it; a time-out bounds it.

        Raises:
            QuorumError: too few copies can be reached.
        """


class Copies(Protocol):
    """Receiver of the changes of the master's state. Every method returns at once."""

    def change(self, base: int, serial: int, lines: bytes) -> Round:
        """Journal lines: the first follows serial ``base``, the last one makes ``serial``."""

    def take_back(self) -> None:
        """The changes of the last round do not hold; copies must forget them."""

    def checkpoint(self) -> None:
        """The configuration was written as a whole; copies may shorten their journals."""

    def write_jobs(self, contents: Contents) -> Round:
        """Files of the job queue were written."""

    def archive_jobs(self, names: Iterable[str]) -> None:
        """Job files went to the archive."""

    def remove_jobs(self, names: Iterable[str]) -> None:
        """Job files are gone; they were never acknowledged."""

    def drain(self, flag: bool) -> Round:
        """The drain flag of the queue was set or removed."""


class NoCopies:
    """There is one node, or the user of the state is not a daemon."""

    def change(self, base: int, serial: int, lines: bytes) -> Round:
        return self

    def take_back(self) -> None:
        """Nobody has it."""

    def checkpoint(self) -> None:
        """Nobody has a journal."""

    def write_jobs(self, contents: Contents) -> Round:
        return self

    def archive_jobs(self, names: Iterable[str]) -> None:
        """Nobody has them."""

    def remove_jobs(self, names: Iterable[str]) -> None:
        """Nobody has them."""

    def drain(self, flag: bool) -> Round:
        return self

    def wait(self) -> None:
        """The only copy is the local one."""
