"""When enough master candidates have a write, so that it can be acknowledged.

Nobody waits for all candidates: a round is over when enough have it, or when so many failed that
it cannot succeed any more.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ganeti import errors
from ganeti.base.text import join_names

#: Seconds a round may take before those who did not answer count as failed.
ROUND_TIMEOUT = 10.0


def count_needed_copies(candidates: int) -> int:
    """How many candidates, the master included, must have something before it is acknowledged.

    A majority; but of two candidates the master alone is enough, else the loss of either would
    stop the cluster. In return nobody takes over from two candidates without both or the word of
    the administrator (see ``config/vote.py``).
    """
    return 1 if candidates <= 2 else candidates // 2 + 1


@dataclass(frozen=True)
class Failure:
    """Why a candidate has no copy of the newest state."""

    text: str
    #: its node daemon answers; the text says what keeps it from writing
    answered: bool = False


class CopyRound:
    """One group of writes on its way; see :class:`~ganeti.base.copies.Round`."""

    def __init__(self, others: Iterable[str], what: str) -> None:
        """``others`` are the names of the candidates beside the master."""
        #: without a copy so far
        self._missing = set(others)
        self._all = len(self._missing) + 1
        self._needed = count_needed_copies(self._all) - 1
        self._left = self._all - 1
        self._what = what
        self._failures: dict[str, Failure] = {}
        self._cond = threading.Condition()

    def note_success(self, node: str) -> None:
        with self._cond:
            self._missing.discard(node)
            self._needed -= 1
            self._left -= 1
            self._cond.notify_all()

    def note_failure(self, node: str, why: Failure) -> None:
        with self._cond:
            self._left -= 1
            self._failures[node] = why
            self._cond.notify_all()

    def wait(self) -> None:
        with self._cond:
            self._cond.wait_for(
                lambda: self._needed <= 0 or self._left < self._needed, ROUND_TIMEOUT
            )
            if self._needed <= 0:
                return
            if self._left >= self._needed:  # they had their time
                late = Failure(f"no answer within {ROUND_TIMEOUT:.0f} s")
                for node in self._missing:
                    self._failures.setdefault(node, late)
            raise errors.QuorumError(self._problem())

    def _problem(self) -> str:
        missing = {node: self._failures.get(node) for node in sorted(self._missing)}
        why = "; ".join(
            f"{node}: {failure.text.removeprefix(f'node {node}: ') if failure else 'no answer yet'}"
            for node, failure in missing.items()
        )
        needed = count_needed_copies(self._all)
        return (
            f"{self._what} is on {self._all - len(missing)} of {self._all} master candidates,"
            f" {needed} are needed. Missing: {why}. {self._remedy(missing, needed)}"
        )

    def _remedy(self, missing: Mapping[str, Failure | None], needed: int) -> str:
        broken = [node for node, failure in missing.items() if failure and failure.answered]
        silent = [node for node, failure in missing.items() if failure and not failure.answered]
        parts = []
        if broken:
            parts.append(f"Remove the cause on {join_names(broken)}; copies follow by themselves.")
        if silent:
            text = f"Start the node daemons of {join_names(silent)}"
            if self._all - len(silent) < needed:
                text += (
                    "; or, if these servers are dead and cannot come back by themselves, run on the"
                    f" master: gnt-cluster recover-quorum {' '.join(silent)}"
                )
            parts.append(text)
        return " ".join(parts)
