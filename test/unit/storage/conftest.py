"""What several of these tests have in common."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import loop_lvm
import pytest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory for file disks."""
    directory = tmp_path / "disks"
    directory.mkdir(mode=0o750)
    return directory


@pytest.fixture
def disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[loop_lvm.LoopDisks]:
    """Volume group ``xenvg`` of real LVM metadata on three disks of 31 extents of 4 MiB each."""
    loop_lvm.skip_if_unavailable()
    with loop_lvm.loop_disks(tmp_path / "lvm", 128, 128, 128) as made:
        monkeypatch.setenv("LVM_SYSTEM_DIR", str(made.home))
        made.group("xenvg")
        yield made
