"""What faults did to operations: written down by scenarios, printed as a table."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lab.place import REPOSITORY, cache, lock

TARGET = REPOSITORY / "doc" / "reference" / "faults.md"
_HEAD = """\
# Faults

What became of operations when something broke, on emulated hosts with the real daemons, LVM, DRBD
and QEMU. Written by `UPDATE_RECORDED=1 make check-hosts`; each row is a scenario that passed in
`test/hosts/`. Seconds are those of emulated processors (Python is some ten times slower there).
"Recovery" is what brought things back to normal.

| operation | fault | outcome | recovery | seconds |
| --- | --- | --- | --- | ---: |
"""


@dataclass
class Case:
    """One row; a scenario fills ``outcome`` and ``recovery`` with what it saw."""

    operation: str
    fault: str
    outcome: str = ""
    recovery: str = "none needed"
    seconds: float = field(default=0.0)

    @property
    def row(self) -> str:
        cells = (self.operation, self.fault, self.outcome, self.recovery, f"{self.seconds:.1f}")
        return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |\n"


class Book:
    def __init__(self) -> None:
        self._cases: list[Case] = []

    @contextlib.contextmanager
    def case(self, operation: str, fault: str) -> Iterator[Case]:
        """Measures the time; a case that raises is not written down."""
        made, begin = Case(operation, fault), time.monotonic()
        yield made
        assert made.outcome, f"{operation} with {fault}: the scenario says no outcome"
        made.seconds = time.monotonic() - begin
        self._cases.append(made)

    def text(self, known: str = "") -> str:
        """The table; rows of an older one stay where no new case tells of the same, and so does
        what follows it (see ``test/property/test_daemon_deaths.py``).
        """
        table, mark, more = known.partition("\n## ")
        rows = {key_of(row): row for row in table.splitlines(keepends=True) if row[:2] == "| "}
        rows.update((key_of(case.row), case.row) for case in self._cases)
        for row in _HEAD.splitlines(keepends=True):
            rows.pop(key_of(row), None)
        return _HEAD + "".join(row for _, row in sorted(rows.items())) + mark + more

    def close(self) -> None:
        """Add to the table of this run; with UPDATE_RECORDED=1 also to that in the documentation.

        Other processes of the same run may do so at the same time.
        """
        targets = [_find_table(), *([TARGET] if os.environ.get("UPDATE_RECORDED") else [])]
        with lock("faults"):
            for target in targets if self._cases else []:
                known = target.read_text(encoding="utf-8") if target.exists() else ""
                target.write_text(self.text(known), encoding="utf-8")


def begin() -> None:
    """Begin the table of a run."""
    _find_table().unlink(missing_ok=True)


def _find_table() -> Path:
    return cache() / "faults.md"


def key_of(row: str) -> tuple[str, ...]:
    """Operation and fault."""
    return tuple(row.split(" | ")[:2])
