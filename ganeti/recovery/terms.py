"""Which master a node follows. Pure; ``node/term.py`` keeps the answer on disk."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """The highest number that a node has seen, and who claimed it; empty: it was not told."""

    number: int = 0
    master: str = ""

    def hear(self, number: int, master: str) -> Term | None:
        """The term after a call of a master; None: the call is of an older or another one."""
        other = master and self.master and master != self.master
        if number < self.number or (number == self.number and other):
            return None
        if number > self.number or (master and not self.master):
            return Term(number, master)
        return self

    def claim(self, number: int, master: str, known: int | None = None) -> Term | None:
        """The term after a claim; None: another node has claimed this number or a higher one.

        ``known`` is what this node said when it was asked for its vote. If another node has claimed
        a term since then, the vote is out of date, whatever the numbers are. A claim may come
        twice.
        """
        late = known is not None and self.number > known and self != Term(number, master)
        if (
            late
            or number < self.number
            or (number == self.number and self.master not in ("", master))
        ):
            return None
        return Term(number, master)
