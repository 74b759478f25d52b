"""The host's end of the channel to the agent in a machine, and of QEMU's own monitor."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.place import LabError


@dataclass(frozen=True)
class Ran:
    """What a command in a machine did."""

    code: int
    out: str
    err: str
    seconds: float = 0.0

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def wait_for(
    what: str, condition: Callable[[], Any], limit: float = 60.0, pause: float = 0.5
) -> Any:
    """Wait until something that no event tells is true; the value that was true."""
    end = time.monotonic() + limit
    while not (value := condition()):
        if time.monotonic() > end:
            raise LabError(f"{what}: not within {limit:g} s")
        time.sleep(pause)  # the condition is one that no event tells
    return value


def connect(path: Path, limit: float) -> socket.socket:
    def attempt() -> socket.socket | None:
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(str(path))
        except OSError:
            sock.close()
            return None
        return sock

    found: socket.socket = wait_for(f"socket {path}", attempt, limit, 0.02)
    return found


class Channel:
    """Commands to the agent, any number at the same time."""

    def __init__(self, path: Path, limit: float) -> None:
        self._sock = connect(path, limit)
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._last = 0
        self.hello: Future[str] = Future()
        self._thread = threading.Thread(target=self._read, name=f"lab-{path.parent.name}")
        self._thread.start()

    def start(
        self, argv: list[str], limit: float, stdin: str = "", env: dict[str, str] | None = None
    ) -> Future[dict[str, Any]]:
        """Send a command; the future is its answer, or a LabError when the machine is gone."""
        answer: Future[dict[str, Any]] = Future()
        with self._lock:
            self._last += 1
            self._waiting[self._last] = answer
            request = {"id": self._last, "argv": argv, "timeout": limit, "stdin": stdin}
            self._send({**request, "env": env or {}})
        return answer

    def run(
        self, argv: list[str], limit: float, stdin: str = "", env: dict[str, str] | None = None
    ) -> Ran:
        begin = time.monotonic()
        try:
            answer = self.start(argv, limit, stdin, env).result(limit + 15.0)
        except FutureTimeoutError as err:
            raise LabError(f"no answer to {argv} within {limit:g} s") from err
        return Ran(answer["code"], answer["out"], answer["err"], time.monotonic() - begin)

    def power_off(self) -> None:
        with self._lock:
            self._send({"op": "poweroff"})

    def _send(self, request: dict[str, Any]) -> None:
        try:
            self._sock.sendall(json.dumps(request).encode() + b"\n")
        except OSError as err:
            raise LabError(f"the machine is gone: {err}") from err

    def _read(self) -> None:
        with self._sock.makefile("rb") as lines:
            try:
                for line in lines:
                    self._take(line)
            except OSError:
                pass  # the machine lost its power: told below
        gone = LabError("the machine is gone")
        for future in self._waiting.values():
            future.set_exception(gone)
        if not self.hello.done():
            self.hello.set_exception(gone)

    def _take(self, line: bytes) -> None:
        try:
            answer = json.loads(line)
        except ValueError:
            return  # half a line of a machine that was reset
        if "hello" in answer:
            if not self.hello.done():
                self.hello.set_result(answer["hello"])
        elif (future := self._waiting.pop(answer["id"], None)) is not None:
            future.set_result(answer)

    def close(self) -> None:
        """To be called when the machine ended; the reader ends by itself then."""
        self._thread.join(10.0)
        self._sock.close()


class Monitor:
    """QEMU's machine protocol, as far as tests need it."""

    def __init__(self, path: Path) -> None:
        self._sock = connect(path, 10.0)
        self._sock.settimeout(30.0)
        self._file = self._sock.makefile("r")
        self._file.readline()
        self.command("qmp_capabilities")

    def command(self, name: str, /, **arguments: Any) -> Any:
        request: dict[str, Any] = {"execute": name, "arguments": arguments}
        self._sock.sendall(json.dumps(request).encode() + b"\n")
        while True:
            line = self._file.readline()
            if not line:
                raise LabError(f"{name}: QEMU is gone")
            answer = json.loads(line)
            if "error" in answer:
                raise LabError(f"{name}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def read_events(self) -> list[str]:
        """Names of the events that were not read yet, until QEMU ends."""
        return [found["event"] for line in self._file if "event" in (found := json.loads(line))]

    def close(self) -> None:
        self._file.close()
        self._sock.close()
