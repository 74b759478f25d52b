"""Tests in random order: ``pytest -p shuffle``, and ``SHUFFLE=SEED`` for the same order again.

Shuffles files, and tests within their file or class, so that what files share is still made once. A
test that fails only so depends on what another one left behind.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict

import pytest

_VARIABLE = "SHUFFLE"


def pytest_configure() -> None:
    os.environ.setdefault(_VARIABLE, str(random.randrange(10**6)))  # workers get it, too


def pytest_report_header() -> str:
    return f"order of tests: {_VARIABLE}={os.environ[_VARIABLE]}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    dice = random.Random(os.environ[_VARIABLE])
    files: dict[object, dict[object, list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        files[item.path][item.parent].append(item)
    items.clear()
    for groups in _shuffled(dice, list(files.values())):
        for group in _shuffled(dice, list(groups.values())):
            items.extend(_shuffled(dice, group))


def _shuffled(dice: random.Random, things: list) -> list:
    return dice.sample(things, len(things))
