"""Stories on emulated servers: ``make check-servers``.

A plain run of all tests takes nothing from here. See ``doc/design/hosts.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab.server import Servers

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


@pytest.fixture(autouse=True)
def each_step_once(request: pytest.FixtureRequest, servers: Servers) -> Iterator[None]:
    """None after a failed one, none that an earlier run has done; its servers are kept."""
    if servers.failed:
        pytest.skip("an earlier step failed")
    name, failed = request.node.name, request.session.testsfailed
    if name in servers.done:
        pytest.skip("an earlier run has done it")
    yield
    servers.failed = request.session.testsfailed > failed
    if not servers.failed:
        servers.save(name)


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
