"""Readers of events: resuming, filters, heartbeats, and those that do not read."""

from __future__ import annotations

import queue
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ganeti import errors
from ganeti.net.loop import Loop
from ganeti.rapi import event_stream
from ganeti.rapi.event_stream import EventStream, Wish


class Detached:
    """The server's end of a connection without TLS."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        sock.setblocking(False)

    def fileno(self) -> int:
        return self._sock.fileno()

    def send(self, data: bytes) -> int:
        try:
            return self._sock.send(data)
        except BlockingIOError:
            return 0

    def is_alive(self) -> bool:
        try:
            return bool(self._sock.recv(100))
        except BlockingIOError:
            return True

    def close(self) -> None:
        self._sock.close()

    def give_back(self) -> None:
        self._sock.close()


class Master:
    """Stands for the LUXI call: the test answers when it likes."""

    def __init__(self, loop: Loop, _path: Path) -> None:
        self.loop = loop
        self.asked: list[Any] = []
        self.number = 0
        self.is_away = False
        Master.last = self

    def ask(self, _name: str, args: list[Any], done: Any, failed: Any) -> None:
        self.asked.append((args, done, failed))
        if self.is_away:
            self.loop.call_soon(lambda: failed(errors.ConnectionClosedError("nobody is there")))
            return
        if args[2] == 0 or args[0] is None:
            position = args[0] or "run-0"
            self.loop.call_soon(lambda: done({"events": [], "last": position, "lost": False}))

    def answer(self, *events: tuple[str, str], size: int = 0) -> None:
        """Answer the open wait with events."""
        wire = []
        for kind, name in events:
            self.number += 1
            wire.append(
                {
                    "id": f"run-{self.number}",
                    "kind": kind,
                    "objects": [name],
                    "object": name,
                    "data": {"x": "x" * size},
                }
            )
        done, last = self.asked[-1][1], f"run-{self.number}"
        self.loop.call_soon(lambda: done({"events": wire, "last": last, "lost": False}))

    def leave(self) -> None:
        """End the open wait, and answer no more."""
        self.is_away = True
        failed = self.asked[-1][2]
        self.loop.call_soon(lambda: failed(errors.ConnectionClosedError("gone")))

    def close(self) -> None:
        pass


class Rig:
    def __init__(self, heartbeat: float = 60.0) -> None:
        self.loop = Loop("test")
        self.stream = EventStream(self.loop, Path("/nowhere"), most=20, heartbeat=heartbeat)
        self.loop.start()
        self._socks: list[socket.socket] = []
        self.ends: queue.Queue[tuple[int, int]] = queue.Queue()

    def read(self, **wish: Any) -> socket.socket:
        ours, theirs = socket.socketpair()
        self._socks.append(theirs)
        theirs.settimeout(5)
        note = lambda status, size: self.ends.put((status, size))  # noqa: E731
        self.stream.add(Detached(ours), Wish(note=note, **wish))  # type: ignore[arg-type]
        return theirs

    def stop(self) -> None:
        self.loop.call_soon(self.stream.close)
        self.loop.stop()
        for sock in self._socks:
            sock.close()


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(event_stream, "LuxiCall", Master)
    made = Rig()
    yield made
    made.stop()


def read_until(sock: socket.socket, word: bytes) -> bytes:
    data = b""
    while word not in data:
        piece = sock.recv(65536)
        assert piece, data
        data += piece
    return data


def test_readers_get_what_they_asked_for(rig: Rig) -> None:
    everything, jobs = rig.read(), rig.read(kinds=frozenset({"job"}))
    web = rig.read(objects=frozenset({"web1"}))
    for sock in (everything, jobs, web):
        assert b"event: start" in read_until(sock, b"event: start\ndata: {}\n\n")
    Master.last.answer(("node", "n1"), ("job", "7"), ("instance", "web1"))
    assert read_until(everything, b'"web1"').count(b"\nevent: ") == 3
    Master.last.answer(("job", "8"))
    got = read_until(jobs, b'"8"')
    assert b"id: run-2\nevent: job\n" in got
    assert b"n1" not in got
    assert b"id: run-3" in read_until(web, b"web1")
    again = rig.read(after="run-1", kinds=frozenset({"job"}))
    got = read_until(again, b'"8"')
    assert got.index(b"run-2") < got.index(b"run-4")
    assert b"run-3" not in got
    for position in ("other-1", "run-99", "nonsense"):
        lost = rig.read(after=position)
        read_until(lost, b"id: run-4\nevent: lost\n")
        lost.close()


def test_a_reader_that_does_not_read_is_dropped(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "BACKLOG", 200_000)
    lazy, good = rig.read(), rig.read()
    read_until(good, b"start")
    for _ in range(20):
        Master.last.answer(("job", "1"), size=100_000)
        assert read_until(good, b"}\n\n")
    assert rig.ends.get(timeout=5)
    data = b"x"
    while data:
        data = lazy.recv(65536)
    Master.last.answer(("job", "last"))
    assert read_until(good, b'"last"')


def test_there_are_not_more_readers_than_allowed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig.stream, "_most", 5)
    readers = [rig.read() for _ in range(5)]
    for reader in readers:
        read_until(reader, b"start")
    assert read_until(rig.read(), b"\r\n\r\n").startswith(b"HTTP/1.1 503 ")
    readers[0].close()
    while rig.ends.get(timeout=5)[0] != 200:
        pass
    assert read_until(rig.read(), b"start").startswith(b"HTTP/1.1 200 ")


def test_silence_is_broken_by_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "LuxiCall", Master)
    rig = Rig(heartbeat=0.05)
    try:
        assert read_until(rig.read(), b": heartbeat\n\n: heartbeat\n\n")
    finally:
        rig.stop()


def test_a_master_that_is_away_is_told_and_its_return_too(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "_PAUSE", 0.01)
    early = rig.read()
    read_until(early, b"event: start\ndata: {}\n\n")
    Master.last.answer(("job", "7"))
    read_until(early, b'"7"')
    Master.last.leave()
    assert read_until(early, b"event: away\ndata: {}\n\n").count(b"event: away") == 1
    late = rig.read(after="run-0")
    got = read_until(late, b"event: away\ndata: {}\n\n")
    assert got.index(b"event: start") < got.index(b'"7"') < got.index(b"event: away")
    Master.last.is_away = False
    for reader in (early, late):
        assert b"id: run-1\nevent: start" in read_until(reader, b"event: start\ndata: {}\n\n")
    Master.last.answer(("job", "8"))
    assert b"event: " not in read_until(early, b'"8"').replace(b"event: job", b"")
