"""What a new cluster takes from the server that it is made on."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganeti.bootstrap import init
from ganeti.paths import Paths


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ({}, ""),
        ({"most-free": 0o755}, "most-free"),
        ({"most-free": 0o755, "hail": 0o755}, "hail"),
        ({"most-free": 0o755, "hail": 0o644}, "most-free"),
        ({"other": 0o755}, ""),
    ],
)
def test_the_default_allocator_is_one_that_is_installed(
    tmp_path: Path, installed: dict[str, int], expected: str
) -> None:
    where = Paths(tmp_path)
    directory = where.iallocator_search_path[-1]
    directory.mkdir(parents=True)
    for name, mode in installed.items():
        (directory / name).write_text("#!/bin/sh\n")
        (directory / name).chmod(mode)
    assert init.installed_allocator(where) == expected
