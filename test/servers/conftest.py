"""From bare Debian to running guests, on emulated servers: ``make check-servers``.

A plain run of all tests takes nothing from here. See ``doc/design/hosts.md``.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab import debs, server
from lab.place import LabError, Unavailable

HERE = Path(__file__).parent
#: Seconds for one step; those of a power cut wait for three boots.
LIMIT = 3600


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    asked = [(Path.cwd() / word.partition("::")[0]).resolve() for word in config.args]
    return None if any(path.is_relative_to(HERE) for path in asked) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(LIMIT))


@pytest.fixture(scope="session")
def servers() -> Iterator[server.Servers]:
    """Three bare servers with the package of this project in their share."""
    try:
        package = debs.package()
        with server.running(3, state=server.kept()) as made:
            for each in made.servers:
                shutil.copy(package, each.share)
            yield made
            for each in made.servers:
                with contextlib.suppress(LabError):  # it may be off
                    print(f"--- {each.name}\n{each.sh('tail -n 30 /var/log/ganeti/*.log')}")
    except Unavailable as err:
        pytest.skip(str(err))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A table of all steps."""
    reports = [
        report
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call" and "test/servers/" in report.nodeid
    ]
    for report in sorted(reports, key=lambda report: report.start):
        name = report.nodeid.partition("::test_")[2].replace("_", " ")
        terminalreporter.write_line(f"{report.duration:7.1f} s  {report.outcome:7}  {name}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Each step's name and seconds, at once."""
    if "test/servers/" in report.nodeid and (report.when == "call" or report.failed):
        name = report.nodeid.partition("::")[2]
        print(f"\n{report.outcome:8} {report.duration:6.1f} s  {name}", flush=True)
