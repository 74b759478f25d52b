"""What holds for all tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import hypothesis
import long_files_first
import memory_disk
import pytest
import side_by_side

# Tests start the programs hundreds of times; their modules are to be compiled once for all.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
memory_disk.use()
# How long something takes says nothing on a machine with other work.
hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    side_by_side.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    count = config.option.side_by_side
    if count > 1:
        config.pluginmanager.register(side_by_side.SideBySide(config, count))
    config.pluginmanager.register(long_files_first.LongFilesFirst(config))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Workers send what a test logged as UTF-8; some tests log what has no such form."""
    report: pytest.TestReport = yield
    report.sections = [
        (title, text.encode("utf-8", "backslashreplace").decode())
        for title, text in report.sections
    ]
    return report
