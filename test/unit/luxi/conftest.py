"""LUXI servers on real sockets that are stopped after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from raw_luxi import Raw

from ganeti.luxi.server import LuxiServer


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
