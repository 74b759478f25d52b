"""Order of test files: those that took longest in earlier runs come first.

Files are what runs side by side, so a long one that begins last leaves processors idle. A first run
knows no times: it begins with the files that are marked ``long``, or ``long(SECONDS)``, then takes
them by name.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

#: Name in pytest's cache: file -> seconds.
_CACHE = "ganeti/seconds_of_files"
#: Seconds that a file marked ``long`` without a number is taken to need before it ran.
_LONG = 60.0


class LongFilesFirst:
    """Remembers the seconds of each file, and sorts by them."""

    def __init__(self, config: pytest.Config) -> None:
        # None without pytest's cache
        self._cache: pytest.Cache | None = getattr(config, "cache", None)
        self._is_worker = hasattr(config, "workerinput")
        self._known: dict[str, float] = self._cache.get(_CACHE, {}) if self._cache else {}
        self._seen: dict[str, float] = defaultdict(float)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: -self._estimate(item))

    def _estimate(self, item: pytest.Item) -> float:
        mark = item.get_closest_marker("long")
        unknown = (mark.args[0] if mark.args else _LONG) if mark else 0.0
        return self._known.get(_file(item.nodeid), unknown)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seen[_file(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        # Workers read what the controller has written; a run of single tests says little.
        if self._cache and not self._is_worker:
            longer = {name: max(s, self._known.get(name, 0)) for name, s in self._seen.items()}
            self._cache.set(_CACHE, {**self._known, **longer})


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]
