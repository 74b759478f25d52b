"""A plugin of pytest: how much of the recorded tables is there, and what is missing.

``make check-contract`` runs the tests that go through the tables with it. It also notes which codes
verification printed in tests: a code that is only mentioned does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import contract
import pytest

EMITTED: set[str] = set()
CODES = "codes of verify in tests"


@pytest.fixture(autouse=True, scope="session")
def _note_codes() -> Iterator[None]:
    from ganeti.ops.verification.report import Report

    line = Report._line

    def noting(self: Any, level: str, code: str, *words: str) -> None:
        EMITTED.add(str(code))
        line(self, level, code, *words)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Report, "_line", noting)
        yield


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not EMITTED:
        return
    try:
        contract.check_table(CODES, contract.read_recorded("names")["verify_codes"], EMITTED)
    except AssertionError as err:
        print(f"\n{err}")
        session.exitstatus = session.exitstatus or 1


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.section("contract")
    for table, (wanted, missing) in contract.FOUND.items():
        terminalreporter.line(f"{wanted - len(missing):5}/{wanted:<5} {table}")
        for item in _shortened(table, missing):
            never = item in contract.NEVER.get(table, ())
            terminalreporter.line(f"{'':12}{'never' if never else 'missing'}: {item}")


def _shortened(table: str, missing: list[str]) -> list[str]:
    """One line for all that an entry of the list of missing things stands for."""
    entries = sorted(contract.NOT_YET.get(table, ()))
    found = []
    for entry in entries:
        count = sum(item != entry and item.startswith(f"{entry} ") for item in missing)
        found += [f"{entry} ({count})"] if count else []
    return found + [
        item for item in missing if not any(item.startswith(f"{entry} ") for entry in entries)
    ]
