"""Attacks on a real cluster on loopback; ``make test-attack`` runs them.

Each test is one attack: it passes when the attack was held, which its line says. Without ``ATTACK``
in the environment nothing here is collected, because all attacks take some minutes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "cluster"))

if not os.environ.get("ATTACK"):
    collect_ignore_glob = ["test_*.py"]

from arena import Arena  # noqa: E402


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """A cluster of three nodes with instances web1 and web2; one for each file of attacks."""
    made = Arena(tmp_path_factory.mktemp("attack") / "c")
    try:
        yield made
    finally:
        made.cluster.destroy()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Attack, result, seconds."""
    rows: dict[str, tuple[str, float]] = {}
    for outcome, word in (
        ("passed", "held"),
        ("skipped", "skipped"),
        ("failed", "NOT HELD"),
        ("error", "NOT HELD"),
    ):
        for report in terminalreporter.stats.get(outcome, []):
            path, _, test = str(getattr(report, "nodeid", "")).partition("::")
            if not Path(path).parent.match("test/attack"):
                continue
            rows[test.removeprefix("test_").replace("_", " ")] = (word, report.duration)
    if not rows:
        return
    terminalreporter.section("attacks")
    for name, (word, seconds) in rows.items():
        terminalreporter.write_line(f"ATTACK {name}: {word}{seconds:10.1f} s")
    held = sum(word == "held" for word, _seconds in rows.values())
    total = sum(seconds for _word, seconds in rows.values())
    terminalreporter.write_line(f"{held} of {len(rows)} attacks held, {total:.0f} s")
