"""Queues that are stopped after the test."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scripted_queue import Office


@pytest.fixture
def hire(tmp_path: Path) -> Iterator[Callable[..., Office]]:
    """Start queues; stopped after the test."""
    offices: list[Office] = []

    def start(workers: int = 4, directory: Path | None = None) -> Office:
        office = Office(directory or tmp_path / "queue", workers)
        offices.append(office)
        return office

    yield start
    for office in offices:
        office.stop()


@pytest.fixture
def office(hire: Callable[..., Office]) -> Office:
    return hire()


@pytest.fixture
def crash(tmp_path: Path) -> Callable[[Office], Path]:
    """What a power cut would leave of a queue's directory right now."""

    def copy(office: Office) -> Path:
        target = tmp_path / f"after-{len(list(tmp_path.iterdir()))}"
        # The journal first: what the files get meanwhile is not in it any more.
        for path in sorted(office.directory.rglob("*"), key=lambda path: path.name != "journal"):
            where = target / path.relative_to(office.directory)
            where.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                shutil.copyfile(path, where)  # others may be written meanwhile
        return target

    return copy
