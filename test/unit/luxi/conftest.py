"""LUXI servers on real sockets that are stopped after the test, and a watch on leaks."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from raw_luxi import Raw

from ganeti.luxi.server import LuxiServer


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
def path(tmp_path: Path) -> Path:
    return tmp_path / "luxi"


@pytest.fixture
def serve(path: Path) -> Iterator[Callable[..., LuxiServer]]:
    started: list[LuxiServer] = []

    def start(handler: Callable[..., None], **options: Any) -> LuxiServer:
        server = LuxiServer(path, handler, **options)
        server.start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def dial(path: Path) -> Iterator[Callable[[], Raw]]:
    opened: list[Raw] = []

    def connect() -> Raw:
        raw = Raw(path)
        opened.append(raw)
        return raw

    yield connect
    for raw in opened:
        raw.close()
