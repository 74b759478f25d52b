"""What several of these tests have in common."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from one_process import OneProcess
from op_samples import Findings


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[OneProcess]:
    """Three nodes in this process."""
    made = OneProcess(tmp_path / "cluster")
    yield made
    made.close()


@pytest.fixture
def findings() -> Findings:
    """What a verification has reported so far."""
    return Findings()
