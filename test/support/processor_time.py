"""Which test files cost what: ``pytest -p processor_time`` prints a table at the end.

Processor seconds count all processes that a test starts, also daemons that leave it, where the
kernel has a cgroup for it (root, ``cpuacct``); otherwise only those that ended while it ran. The
rest of the seconds by the clock is waiting.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

CGROUPS = Path("/sys/fs/cgroup/cpuacct")
PROPERTY = "processor_seconds"


def _measure_descendants() -> float:
    return sum(os.times()[:4])


def _meter() -> Callable[[], float]:
    """What reads the processor seconds of this process and all that it started."""
    group = CGROUPS / f"pytest-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cgroup.procs").write_text("0")
    except OSError:
        return _measure_descendants

    def leave() -> None:
        with contextlib.suppress(OSError):
            for pid in (group / "cgroup.procs").read_text().split():
                (CGROUPS / "cgroup.procs").write_text(pid)
            group.rmdir()

    atexit.register(leave)
    return lambda: int((group / "cpuacct.usage").read_text()) / 1e9


class ProcessorTime:
    """Adds processor seconds to each report, and the reports of a file to a row."""

    def __init__(self) -> None:
        self._measure()
        self._files: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        self._begun = time.monotonic()

    def _measure(self) -> None:
        self._pid = os.getpid()
        self._read = _meter()
        self._last = self._read()

    def pytest_runtest_logstart(self) -> None:
        if os.getpid() != self._pid:  # forked by side_by_side
            self._measure()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        report: pytest.TestReport = yield
        now = self._read()
        report.user_properties = [*report.user_properties, (PROPERTY, now - self._last)]
        self._last = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        row = self._files[report.nodeid.partition("::")[0]]
        # Later phases of a test carry on what earlier ones recorded; the last one is this phase.
        row[0] += [0.0, *(v for name, v in report.user_properties if name == PROPERTY)][-1]
        row[1] += report.duration
        row[2] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        rows = sorted(self._files.items(), key=lambda item: -item[1][0])
        terminalreporter.section("processor seconds, seconds by the clock, tests")
        for name, (spent, lasted, count) in rows:
            terminalreporter.write_line(f"{spent:8.2f} {lasted:8.2f} {count:6.0f}  {name}")
        spent, lasted, count = (sum(row[n] for _name, row in rows) for n in range(3))
        taken = time.monotonic() - self._begun
        terminalreporter.write_line(f"{spent:8.2f} {lasted:8.2f} {count:6.0f}  in {taken:.1f} s")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ProcessorTime())
