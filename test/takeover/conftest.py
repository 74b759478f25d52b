"""A server with Debian's own Ganeti 3.0.2 and guests becomes ours.

A plain run of all tests takes nothing from here, and no target of make does. The story has not been
run as a whole yet: on a busy machine Ganeti 3.0.2 runs into limits of its own when jobs begin.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import debs, server
from lab.place import Unavailable

HERE = Path(__file__).parent
LIMIT = 5400
#: Debian's own packages, at hand on the disk of the server.
OLD = ("ganeti", "ganeti-3.0", "ganeti-haskell-3.0", "ganeti-htools-3.0", "cron")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    asked = [(Path.cwd() / word.partition("::")[0]).resolve() for word in config.args]
    return None if any(path.is_relative_to(HERE) for path in asked) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(LIMIT))


@pytest.fixture(scope="session")
def servers() -> Iterator[server.Servers]:
    """One bare server with the package of this project in its share."""
    try:
        package = debs.package()
        with server.running(1, more=OLD, disks=[24576]) as made:
            for each in made.servers:
                shutil.copy(package, each.share)
                shutil.copy(HERE / "listener.py", each.share)
                shutil.copytree(HERE.parent.parent / "os/bootsector", each.share / "bootsector")
            yield made
    except Unavailable as err:
        pytest.skip(str(err))
