"""The body of a request as an application reads it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any


class Body:
    """A request body of known length; its early end is an error instead of a short body."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def _check_end(self, data: bytes, *, complete: bool) -> bytes:
        if not complete:
            raise ConnectionResetError(
                errno.ECONNRESET,
                f"the connection ended {self._body.remaining} bytes before the request did",
            )
        return data

    def read(self, size: int | None = None) -> bytes:
        left = self._body.remaining
        wanted = left if size is None or size < 0 else min(size, left)
        data = self._body.read(wanted)
        return self._check_end(data, complete=len(data) == wanted)

    def readline(self, size: int | None = None) -> bytes:
        left = self._body.remaining
        wanted = left if size is None or size < 0 else min(size, left)
        line = self._body.readline(wanted)
        return self._check_end(line, complete=len(line) == wanted or line.endswith(b"\n"))

    def readlines(self, _hint: int | None = None) -> list[bytes]:
        return list(self)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.readline, b"")
