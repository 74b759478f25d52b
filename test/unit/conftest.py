"""A watch on leaks for all unit tests."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

import pytest


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
