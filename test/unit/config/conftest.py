"""Stores that are closed after the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from config_samples import SetClock, rooted

from ganeti.config.store import Store
from ganeti.paths import Paths


@pytest.fixture
def root(tmp_path: Path) -> Paths:
    return rooted(tmp_path)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def store(root: Paths, clock: SetClock) -> Iterator[Store]:
    made = Store(root, clock)
    yield made
    made.close()
