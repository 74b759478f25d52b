"""Collecting a request until somebody should look at it; pure."""

from __future__ import annotations

import re

#: Bytes that a request head may have.
MAX_HEAD = 64 * 1024
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_BODY_LENGTH = re.compile(rb"\ncontent-length:[ \t]*(\d{1,12})[ \t]*\r?\n", re.IGNORECASE)
_EXPECT = re.compile(rb"\nexpect:", re.IGNORECASE)


class RequestHead:
    """The bytes of one request so far: the head, and the body if that is not too large."""

    def __init__(self, collect_body: int) -> None:
        """``collect_body`` is the size of the largest body that is waited for."""
        self._collect_body = collect_body
        self._data = bytearray()
        self._wanted: int | None = None

    def __len__(self) -> int:
        return len(self._data)

    def feed(self, data: bytes) -> bool:
        """Take more bytes; whether a worker can go on (also with a head that is too long)."""
        start = max(0, len(self._data) - 3)
        self._data += data
        if self._wanted is None:
            end = _END_OF_HEAD.search(self._data, start)
            if end is None:
                return len(self._data) > MAX_HEAD
            self._wanted = end.end() + self._body_length(end.end())
        return len(self._data) >= self._wanted

    def _body_length(self, end: int) -> int:
        found = _BODY_LENGTH.search(self._data, 0, end)
        # A client that expects a word first would never send its body.
        if found is None or _EXPECT.search(self._data, 0, end):
            return 0
        length = int(found[1])
        return length if length <= self._collect_body else 0

    def content(self) -> bytes:
        return bytes(self._data)

    def clear(self) -> None:
        self._data.clear()
        self._wanted = None
