"""A small WebSocket client for tests, over any connected socket."""

from __future__ import annotations

import base64
import os
import socket
from collections.abc import Mapping


class ClosedError(Exception):
    """The server has closed the WebSocket; ``code`` says why."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


class WebSocketClient:
    """Opens a WebSocket; ``status`` is that of the answer (101: it is open)."""

    def __init__(
        self, sock: socket.socket, path: str, headers: Mapping[str, str] = {}, host: str = "x"
    ) -> None:
        self.sock = sock
        self._rest = b""
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: {host}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Protocol: binary",
            *(f"{name}: {text}" for name, text in headers.items()),
        ]
        sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        while b"\r\n\r\n" not in self._rest:
            self._rest += self._receive()
        self.head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        self.status = int(self.head.split()[1])

    def _receive(self) -> bytes:
        data = self.sock.recv(65536)
        if not data:
            raise ClosedError(0, "the connection ended")
        return data

    def _take(self, size: int) -> bytes:
        while len(self._rest) < size:
            self._rest += self._receive()
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def send(self, data: bytes, kind: int = 2) -> None:
        """One masked frame; ``kind`` 2 is binary, 1 text, 8 close, 9 ping."""
        mask = os.urandom(4)
        size = len(data)
        length = (
            bytes([0x80 | size])
            if size < 126
            else bytes([0x80 | 126]) + size.to_bytes(2)
            if size < 65536
            else bytes([0x80 | 127]) + size.to_bytes(8)
        )
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
        self.sock.sendall(bytes([0x80 | kind]) + length + mask + masked)

    def receive(self) -> bytes:
        """The payload of the next binary frame.

        Raises:
            ClosedError: the server closed.
        """
        while True:
            first, second = self._take(2)
            size = second & 127
            if size > 125:
                size = int.from_bytes(self._take(2 if size == 126 else 8))
            data = self._take(size)
            if first & 15 == 8:
                raise ClosedError(int.from_bytes(data[:2]) if data else 1005, data[2:].decode())
            if first & 15 in (0, 2):
                return data

    def read_until(self, word: bytes) -> bytes:
        """All payloads up to the one that completes ``word``."""
        found = b""
        while word not in found:
            found += self.receive()
        return found

    def close(self) -> None:
        self.sock.close()

    def __enter__(self) -> WebSocketClient:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
