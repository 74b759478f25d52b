"""QEMU's own notes of what happened to a guest: its events, a line of JSON each.

QEMU writes an event before anything follows from it (``RESUME`` before the first instruction, for
example), so the file tells the truth also when QEMU or the node daemon was killed right after.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ganeti import errors
from ganeti.base import jsonio
from ganeti.base.json_types import JsonObject

Event = JsonObject

#: Bytes at the end that are read when the beginning does not matter.
_TAIL = 65536
#: A journal that takes more than this is emptied; nothing old is of interest.
_LIMIT = 1 << 20
_BLOCK = 512


@dataclass(frozen=True)
class Journal:
    """The file; one that is missing is empty."""

    path: Path

    def size(self) -> int:
        """The position at which the next event is written."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def lines(self, start: int) -> list[Event]:
        """Events from a position on."""
        try:
            with self.path.open("rb") as stream:
                stream.seek(start)
                return _events(stream.read())
        except FileNotFoundError:
            return []

    def tail(self) -> list[Event]:
        """The last events."""
        return self.lines(max(0, self.size() - _TAIL))

    def trim(self) -> None:
        """Give back the space of a journal that grew too long, for a guest that continues.

        QEMU writes on where it was, so the file keeps its size and gets a hole.
        """
        try:
            if self.path.stat().st_blocks * _BLOCK > _LIMIT:
                os.truncate(self.path, 0)
        except FileNotFoundError:
            return


def _events(data: bytes) -> list[Event]:
    found = []
    for line in data.splitlines():
        try:
            event = jsonio.loads(line.lstrip(b"\0"))
        except errors.ParseError:
            # The first line may be cut, and QEMU may be writing the last one.
            continue
        if isinstance(event, dict) and "event" in event:
            found.append(event)
    return found


def was_resumed(events: Iterable[Event]) -> bool:
    """Whether a guest that was awaited has run since."""
    return any(event["event"] == "RESUME" for event in events)


def handed_over(events: Iterable[Event]) -> bool:
    """Whether all of a guest was sent, so that it can run only at the other node.

    With post-copy it runs there from the switch on. A RESUME after that: it was taken back.
    """
    gone = False
    for event in events:
        kind, status = event["event"], (event.get("data") or {}).get("status")
        if kind == "RESUME":
            gone = False
        elif kind == "MIGRATION" and status in ("completed", "postcopy-active"):
            gone = True
    return gone


def was_own_will(events: Iterable[Event]) -> bool:
    """Whether the last SHUTDOWN came from the guest, without a POWERDOWN before.

    A press of the power button belongs to the boot that follows the last RESET.
    """
    pressed = own = False
    for event in events:
        kind = event["event"]
        if kind == "RESET":
            pressed = False
        elif kind == "POWERDOWN":
            pressed = True
        elif kind == "SHUTDOWN":
            data = event.get("data") or {}
            own = bool(data.get("guest")) and data.get("reason") == "guest-shutdown"
            own = own and not pressed
    return own
