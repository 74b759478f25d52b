"""Queues that are stopped after the test, and a watch on leaks."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scripted_queue import Office


def _descriptors() -> dict[str, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found[name] = os.readlink(f"/proc/self/fd/{name}")
    return {name: target for name, target in found.items() if not target.endswith("/fd")}


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Fail a test that leaves a thread or a descriptor behind."""
    threads, before = set(threading.enumerate()), _descriptors()
    yield
    for thread in set(threading.enumerate()) - threads:
        thread.join(5)
        assert not thread.is_alive(), f"thread left: {thread.name}"
    opened = {k: v for k, v in _descriptors().items() if before.get(k) != v}
    assert not opened, f"descriptors left: {opened}"


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
