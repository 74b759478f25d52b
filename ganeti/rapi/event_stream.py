"""The cluster's events for any number of readers, as Server-Sent Events.

One LUXI wait brings them all; the latest are kept here as well, so a reader that comes back within
a while misses nothing. A reader that does not read is dropped and disturbs nobody. Readers are told
when the master does not answer, and when it does again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ganeti import errors
from ganeti.base import jsonio
from ganeti.base.clock import SYSTEM
from ganeti.base.json_types import JsonObject
from ganeti.base.ring import Ring
from ganeti.net.http_detached import Detached
from ganeti.net.loop import Loop
from ganeti.rapi import failures, parking
from ganeti.rapi.parking import LuxiCall, WaitingClient

log = logging.getLogger(__name__)

#: Events that are kept for readers that come back, and their bytes.
KEPT = 10_000
KEPT_BYTES = 16 * 1024 * 1024
#: Bytes a reader may be behind.
BACKLOG = 4 * 1024 * 1024
HEARTBEAT = 5.0
#: Seconds after which a reader has to connect and authenticate again (a token may have expired).
LONGEST = 3600.0
#: Seconds of one LUXI wait, and before the next one when the master is away.
_WAIT, _PAUSE = 60, 1.0
_HEARTBEAT = b": heartbeat\n\n"
_HEAD = parking.head(
    200,
    {
        "Content-Type": "text/event-stream",
        "Cache-Control": "no-store",
        "X-Accel-Buffering": "no",
        "X-Content-Type-Options": "nosniff",
        "Connection": "close",
    },
)


@dataclass(frozen=True)
class Wish:
    """Wish of a reader: kinds and objects (none: all), and the id of the last event it has."""

    kinds: frozenset[str] = frozenset()
    objects: frozenset[str] = frozenset()
    after: str | None = None
    #: whether the reader may still read
    may_stay: Callable[[], bool] = lambda: True
    #: receives the HTTP status and the bytes sent when the reader is gone
    note: Callable[[int, int], None] = lambda _status, _size: None


@dataclass(frozen=True)
class _Kept:
    number: int
    kind: str
    objects: frozenset[str]
    frame: bytes

    def is_wanted(self, wish: Wish) -> bool:
        return (not wish.kinds or self.kind in wish.kinds) and (
            not wish.objects or not wish.objects.isdisjoint(self.objects)
        )


class EventStream:
    """All readers; lives in the thread of the loop, only :meth:`add` is for others."""

    def __init__(
        self, loop: Loop, path: Path, *, most: int = 1000, heartbeat: float = HEARTBEAT
    ) -> None:
        """``path`` is the LUXI socket, ``most`` the number of readers that are served."""
        self._loop = loop
        self._luxi = LuxiCall(loop, path)
        self._most = most
        self._heartbeat = heartbeat
        self._ring: Ring[_Kept] = Ring(KEPT, KEPT_BYTES)
        self._run = ""
        self._last = 0
        self._started = False
        self._caught_up = False
        self._is_away = False
        self._readers: dict[WaitingClient, Wish] = {}
        self._early: list[tuple[WaitingClient, Wish]] = []

    def add(self, connection: Detached, wish: Wish) -> None:
        """Register a reader, which is served until it leaves. Thread-safe."""
        self._loop.call_soon(lambda: self._add(connection, wish))

    def hang_up(self) -> None:
        """Make all readers connect and authenticate again; from any thread. They miss no event."""
        self._loop.call_soon(self._hang_up)

    def close(self) -> None:
        """Hang up on all readers, and ask for no more events."""
        self._luxi.close()
        self._hang_up()

    def _hang_up(self) -> None:
        for reader in [*self._readers, *(reader for reader, _wish in self._early)]:
            reader.close()
            self._drop(reader)

    # readers

    def _add(self, connection: Detached, wish: Wish) -> None:
        reader = WaitingClient(self._loop, connection, lambda: self._drop(reader))
        if len(self._readers) + len(self._early) >= self._most:
            text = f"There are {self._most} readers of events already"
            reader.send(
                parking.answer(503, failures.body(503, text), {"Retry-After": "30"}), last=True
            )
            wish.note(503, reader.sent)
            return
        reader.send(_HEAD)
        if self._caught_up:
            self._begin(reader, wish)
        else:
            self._early.append((reader, wish))
            if self._is_away:
                self._send(reader, self._frame("away", {}, self._last))
        if not self._started:
            self._started = True
            self._loop.call_later(self._heartbeat, self._beat)
            self._ask_next(None)

    def _begin(self, reader: WaitingClient, wish: Wish) -> None:
        if reader.closed:
            return
        run, number = self._run, self._last
        frames = []
        if wish.after is not None:
            run, _, text = wish.after.rpartition("-")
            number = int(text) if text.isascii() and text.isdigit() else -1
            first = self._ring[0].number if self._ring else self._last + 1
            if run != self._run or not first - 1 <= number <= self._last:
                frames.append(self._frame("lost", {}, self._last))
                number = self._last
        if not frames:
            frames.append(self._frame("start", {}, number))
        back = min(len(self._ring), self._last - number)
        start = len(self._ring) - back
        frames += [
            self._ring[i].frame
            for i in range(start, len(self._ring))
            if self._ring[i].is_wanted(wish)
        ]
        if self._is_away:
            frames.append(self._frame("away", {}, self._last))
        self._readers[reader] = wish
        self._send(reader, b"".join(frames))

    def _send(self, reader: WaitingClient, data: bytes) -> None:
        if not data:
            return
        reader.send(data)
        if reader.waiting > BACKLOG:
            log.warning("a reader of events is %d bytes behind and dropped", reader.waiting)
            reader.close()
            self._drop(reader)

    def _drop(self, reader: WaitingClient) -> None:
        wish = self._readers.pop(reader, None)
        if wish is not None:
            wish.note(200, reader.sent)
        self._early = [item for item in self._early if item[0] is not reader]

    def _beat(self) -> None:
        self._loop.call_later(self._heartbeat, self._beat)
        oldest = SYSTEM.monotonic() - LONGEST
        for reader, wish in list(self._readers.items()):
            if reader.since < oldest or not wish.may_stay():
                reader.close()
                self._drop(reader)
            else:
                self._send(reader, _HEARTBEAT)

    # the master

    def _ask_next(self, after: str | None) -> None:
        """Ask for what comes next; without waiting while the master may have more at once, and
        to learn that it answers again.
        """
        wait = _WAIT if self._caught_up and not self._is_away else 0
        self._luxi.ask(
            "WaitForEvents", [after, None, wait], self._handle_answer, self._handle_failure
        )

    def _handle_failure(self, err: errors.GanetiError) -> None:
        log.info("events: %s", errors.text(err))
        if not self._is_away:
            self._is_away = True
            self._send_name([*self._readers, *(reader for reader, _wish in self._early)], "away")
        position = f"{self._run}-{self._last}" if self._run else None
        self._loop.call_later(_PAUSE, lambda: self._ask_next(position))

    def _handle_answer(self, answer: JsonObject) -> None:
        run, _, number = answer["last"].rpartition("-")
        was_away, self._is_away = self._is_away, False
        if not self._run:
            # Begin with all that the master still has.
            self._run, self._last = run, 0
            self._ask_next(f"{run}-0")
            return
        if run != self._run or (answer["lost"] and self._caught_up):
            self._ring.clear()
            self._run, self._last = run, int(number)
            self._send_name([*self._readers], "lost")
            self._ask_next(answer["last"])
            return
        if was_away:
            self._send_name([*self._readers], "start")
        kept = [self._keep(event) for event in answer["events"]]
        for item in kept:
            self._ring.append(item, len(item.frame))
        self._last = int(number)
        for reader, wish in list(self._readers.items()):
            self._send(reader, b"".join(item.frame for item in kept if item.is_wanted(wish)))
        if not kept:
            # Nothing more was there when the wait began, or it ended without news.
            self._let_in()
        self._ask_next(answer["last"])

    def _send_name(self, readers: Sequence[WaitingClient], name: str) -> None:
        frame = self._frame(name, {}, self._last)
        for reader in readers:
            self._send(reader, frame)

    def _let_in(self) -> None:
        self._caught_up = True
        early, self._early = self._early, []
        for reader, wish in early:
            self._begin(reader, wish)

    def _keep(self, event: JsonObject) -> _Kept:
        number = int(event["id"].rpartition("-")[2])
        frame = self._frame(event["kind"], event, number)
        return _Kept(number, event["kind"], frozenset(event["objects"]), frame)

    def _frame(self, name: str, value: Mapping[str, object], number: int) -> bytes:
        data = jsonio.dumps(value)
        return f"id: {self._run}-{number}\nevent: {name}\ndata: {data}\n\n".encode()
