"""A volume group of real LVM metadata on loop devices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import loop_lvm
import pytest


@pytest.fixture
def disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[loop_lvm.LoopDisks]:
    """Volume group ``xenvg`` on three disks of 128 MiB (31 extents of 4 MiB each)."""
    reason = loop_lvm.explain_unavailable()
    if reason:
        pytest.skip(reason)
    with loop_lvm.loop_disks(tmp_path / "lvm", 128, 128, 128) as made:
        monkeypatch.setenv("LVM_SYSTEM_DIR", str(made.home))
        made.group("xenvg")
        yield made
