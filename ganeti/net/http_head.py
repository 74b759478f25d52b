"""Collecting the head of a request until it is complete; pure."""

from __future__ import annotations

import re

#: Bytes that a request head may have.
MAX_HEAD = 64 * 1024
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_BODY_LENGTH = re.compile(rb"\ncontent-length:[ \t]*(\d{1,12})[ \t]*\r?\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\ntransfer-encoding:[ \t]*chunked[ \t]*\r?\n", re.IGNORECASE)
_EXPECT = re.compile(rb"(?<=\n)expect:[ \t]*100-continue[ \t]*\r?\n", re.IGNORECASE)
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,8})[^\r\n]{0,200}\r\n")


class RequestHead:
    """The bytes of one request so far: the head, and the body if that is not too large.

    A body is not waited for when it is larger than allowed or its form is not understood; then
    the code that handles the request finds the error.
    """

    def __init__(self, collect_body: int) -> None:
        """``collect_body`` is the size of the largest body that is waited for."""
        self._collect_body = collect_body
        self._data = bytearray()
        self._clear()

    def _clear(self) -> None:
        self._head_end: int | None = None
        #: where the request ends; None while that is not known
        self._end: int | None = None
        #: where the next chunk begins
        self._chunk = 0
        #: whether the client waits for a word before it sends the body
        self.wants_continue = False
        #: whether the body is in chunks and one of them has no proper size
        self.is_malformed = False

    def __len__(self) -> int:
        return len(self._data)

    def feed(self, data: bytes) -> bool:
        """Take more bytes; whether a worker can go on (also with a head that is too long)."""
        start = max(0, len(self._data) - 3)
        self._data += data
        if self._head_end is None:
            found = _END_OF_HEAD.search(self._data, start)
            if found is None:
                return len(self._data) > MAX_HEAD
            self._head_end = self._chunk = self._end = found.end()
            self._examine_body(found.end())
        if self._end is None:
            self._follow_chunks()
        return self._end is not None and len(self._data) >= self._end

    def _examine_body(self, end: int) -> None:
        """Decide what is waited for; the word that the client waits for is taken out."""
        length = _BODY_LENGTH.search(self._data, 0, end)
        chunked = _CHUNKED.search(self._data, 0, end)
        size = int(length[1]) if length else 0
        if not self._collect_body or size > self._collect_body or not (size or chunked):
            return
        expect = _EXPECT.search(self._data, 0, end)
        if expect is not None:
            self.wants_continue = len(self._data) == end
            del self._data[expect.start() : expect.end()]
            end -= expect.end() - expect.start()
        self._chunk = end
        self._end = None if chunked else end + size

    def _follow_chunks(self) -> None:
        """Find the end of a body in chunks (RFC 9112, 7.1); stops at what is not a chunk."""
        while self._end is None:
            line = _CHUNK.match(self._data, self._chunk)
            if line is None:
                # Either not all of the line is here, or it is none.
                if len(self._data) - self._chunk > 256 or b"\n" in self._data[self._chunk :]:
                    self._end = len(self._data)
                    self.is_malformed = True
                return
            size = int(line[1], 16)
            if size == 0:
                self._find_trailer_end(line.end())
                return
            if line.end() + size > self._collect_body + MAX_HEAD:
                self._end = len(self._data)
                return
            if len(self._data) < line.end() + size + 2:
                return
            self._chunk = line.end() + size + 2

    def _find_trailer_end(self, after: int) -> None:
        if self._data.startswith(b"\r\n", after):
            self._end = after + 2
            return
        found = _END_OF_HEAD.search(self._data, after)
        if found is not None:
            self._end = found.end()
        elif len(self._data) - after > MAX_HEAD:
            self._end = len(self._data)

    def content(self) -> bytes:
        return bytes(self._data)

    def clear(self) -> None:
        self._data.clear()
        self._clear()
