"""A client that sends any bytes, and handlers for servers."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from ganeti.luxi.reply import Reply


class Raw:
    """A connection without any manners."""

    def __init__(self, path: Path) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(str(path))
        self._rest = b""

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def ask(self, method: str, *args: Any, **more: Any) -> None:
        self.send(json.dumps({"method": method, "args": args, **more}).encode() + b"\x03")

    def answer(self) -> dict[str, Any]:
        while b"\x03" not in self._rest:
            data = self.sock.recv(1 << 20)
            assert data, "the server hung up"
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\x03")
        found = json.loads(message)
        assert isinstance(found, dict)
        return found

    def result(self, method: str, *args: Any) -> Any:
        self.ask(method, *args)
        answer = self.answer()
        assert answer["success"], answer
        return answer["result"]

    def hung_up(self) -> bool:
        assert not self._rest
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.sock.close()


def echo(method: str, args: dict[str, Any], _peer: Any, reply: Reply) -> None:
    """Answer with what was asked."""
    reply.ok([method, args])
