"""All consoles that browsers have open: one thread, which waits for no single one of them.

A serial line has room for one reader, so all who look at one share a connection to it; of VNC each
has a connection of its own. One of them controls the guest, the others look.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from ganeti import errors
from ganeti.base.clock import SYSTEM
from ganeti.base.json_types import JsonObject
from ganeti.net.http_detached import Detached
from ganeti.net.loop import Loop
from ganeti.net.relay import SocketEnd
from ganeti.rapi.parking import LuxiCall
from ganeti.rapi.rfb import ClientFilter, RfbError
from ganeti.rapi.tickets import Ticket
from ganeti.rapi.websocket import GOING_AWAY, NORMAL, UNSUPPORTED, Upgrade, WebSocket

log = logging.getLogger(__name__)

#: Why a console ends (close codes of WebSockets for applications).
BAD_TICKET, IDLE, LIMIT, GUEST_ENDED, TAKEN_OVER, NODE_AWAY = range(4001, 4007)
#: Consoles that are open at the same time, of one user and in all.
MOST_OF_USER, MOST = 50, 200
#: Seconds without a key or a move of the one in control, and in all, after which a console ends.
IDLE_TIME, TOTAL_TIME = 1800.0, 12 * 3600.0
#: Bytes of what a guest has printed for those who come later, as many as nodes keep.
HISTORY = 64 * 1024
#: Bytes kept for the quickest reader; then the guest is not read. Slower ones may be this much
#: behind before they are dropped.
ROOM, BEHIND = 64 * 1024, 1024 * 1024
_PIECE, _ROUNDS, _SWEEP, _FAREWELL = 16 * 1024, 16, 10.0, 2.0


@dataclass(eq=False)
class Viewer:
    """One browser that looks at a console."""

    socket: WebSocket
    ticket: Ticket
    filter: ClientFilter | None
    began: float
    last_input: float


def find_end(viewer: Viewer, now: float) -> tuple[int, str] | None:
    """Code and text with which a console ends by its time; None while it may stay open."""
    if viewer.ticket.mode == "control" and now - viewer.last_input > IDLE_TIME:
        return IDLE, f"nothing was typed for {IDLE_TIME:.0f} seconds"
    if now - viewer.began > TOTAL_TIME:
        return LIMIT, f"open for {TOTAL_TIME:.0f} seconds"
    return None


class Consoles:
    """The hub; methods without an underscore are for any thread, but for what lines call."""

    def __init__(self, path: Path) -> None:
        """``path`` is the LUXI socket."""
        self.loop = Loop("consoles")
        self.path = path
        #: counts changes of users and tokens
        self.generation = 0
        self._lines: set[_Line] = set()

    def start(self) -> None:
        self.loop.start()
        self.loop.call_soon(self._sweep)

    def stop(self) -> None:
        """Hang up on all, end the thread."""
        self.loop.call_soon(self._close)
        self.loop.stop()

    def _close(self) -> None:
        for line in [*self._lines]:
            line.end(GOING_AWAY, "the remote API stops")

    def list_open(self, instance: str) -> list[JsonObject]:
        """The viewers of the consoles of an instance."""
        now, wall = SYSTEM.monotonic(), SYSTEM.now()
        return [
            {
                "kind": viewer.ticket.kind,
                "mode": viewer.ticket.mode,
                "user": viewer.ticket.user,
                "since": wall - (now - viewer.began),
            }
            for viewer in self._viewers()
            if viewer.ticket.instance == instance
        ]

    def _viewers(self) -> list[Viewer]:
        return [viewer for line in [*self._lines] for viewer in [*line.viewers]]

    def renew(self) -> None:
        """Users or tokens have changed: users without a session must ask for a ticket again."""
        self.generation += 1
        self.check()

    def check(self) -> None:
        """End the consoles of those who may not look any more."""
        self.loop.call_soon(self._end_strangers)

    def _end_strangers(self) -> None:
        for line in [*self._lines]:
            for viewer in [*line.viewers]:
                if not viewer.ticket.may_stay():
                    line.drop(viewer, BAD_TICKET, "the session has ended")

    def reject(self, connection: Detached, upgrade: Upgrade, code: int, reason: str) -> None:
        """Accept a WebSocket only to say why it is closed."""
        self.loop.call_soon(lambda: self._say_goodbye(WebSocket(connection, upgrade), code, reason))

    def _say_goodbye(self, socket: WebSocket, code: int, reason: str) -> None:
        """Close after the client has taken the reason, or has had time enough."""
        socket.finish(code, reason)
        timer = self.loop.call_later(_FAREWELL, lambda: finish())

        def finish() -> None:
            timer.cancel()
            self.loop.forget(socket)
            socket.close()

        def flush() -> None:
            try:
                socket.flush()
            except OSError:
                finish()
                return
            if socket.waiting:
                self.loop.watch(socket, flush, read=False, write=True)
            else:
                finish()

        flush()

    def add(self, connection: Detached, upgrade: Upgrade, ticket: Ticket) -> None:
        """Show a console to a browser."""
        self.loop.call_soon(lambda: self._add(WebSocket(connection, upgrade), ticket))

    def _add(self, socket: WebSocket, ticket: Ticket) -> None:
        present = self._viewers()
        count = sum(viewer.ticket.user == ticket.user for viewer in present)
        if count >= MOST_OF_USER or len(present) >= MOST:
            self._say_goodbye(socket, LIMIT, f"{len(present)} consoles are open already")
            return
        if ticket.mode == "control":
            self._take_over(ticket)
        now = SYSTEM.monotonic()
        rfb = ClientFilter(view=ticket.mode == "view") if ticket.kind == "vnc" else None
        viewer = Viewer(socket, ticket, rfb, now, now)
        shared = [line for line in self._lines if line.is_shared_for(ticket)]
        line = shared[0] if shared else _Line(self, ticket)
        self._lines.add(line)
        line.add(viewer)
        self.note(viewer, "opened")

    def _take_over(self, ticket: Ticket) -> None:
        for line in [*self._lines]:
            for viewer in [*line.viewers]:
                other = viewer.ticket
                same = (other.instance, other.kind) == (ticket.instance, ticket.kind)
                if same and other.mode == "control":
                    line.drop(viewer, TAKEN_OVER, f"{ticket.user} has taken over", keep=True)

    def forget(self, line: _Line) -> None:
        self._lines.discard(line)

    def part(self, viewer: Viewer, code: int, reason: str) -> None:
        """A viewer leaves: say why, and have it noted."""
        self.loop.forget(viewer.socket)
        self._say_goodbye(viewer.socket, code, reason)
        self.note(viewer, "closed", why=reason, seconds=round(SYSTEM.monotonic() - viewer.began))

    def note(self, viewer: Viewer, what: str, **more: object) -> None:
        """Let the master note who opened or closed a console."""
        ticket = viewer.ticket
        call = LuxiCall(self.loop, self.path)
        data = {
            "what": what,
            "kind": ticket.kind,
            "mode": ticket.mode,
            "user": ticket.user,
            "address": ticket.address,
            **more,
        }
        if what == "opened":
            data["author"] = ticket.author
        log.info("console of %s: %s", ticket.instance, data)

        def fail(err: errors.GanetiError) -> None:
            log.warning("the master has not noted a console: %s", errors.text(err))

        call.ask("NoteConsole", [ticket.instance, data], lambda _value: call.close(), fail)

    def _sweep(self) -> None:
        self.loop.call_later(_SWEEP, self._sweep)
        self._end_strangers()
        now = SYSTEM.monotonic()
        for line in [*self._lines]:
            for viewer in [*line.viewers]:
                found = find_end(viewer, now)
                if found is not None:
                    line.drop(viewer, *found)


class _Line:
    """One connection to a console, and those who look at it."""

    def __init__(self, hub: Consoles, ticket: Ticket) -> None:
        self._hub = hub
        self._loop = hub.loop
        self._ticket = ticket
        self.viewers: list[Viewer] = []
        self._guest: SocketEnd | None = None
        # With the first byte the node begins.
        self._to_guest = bytearray(b"\n")
        self._history = bytearray()
        self._ended = False
        self._luxi = LuxiCall(self._loop, hub.path)
        self._luxi.ask("OpenConsole", [ticket.instance, ticket.kind], self._begin, self._fail)

    def is_shared_for(self, ticket: Ticket) -> bool:
        own = self._ticket
        return ticket.kind == "serial" == own.kind and ticket.instance == own.instance

    def add(self, viewer: Viewer) -> None:
        """Show what was printed before, and from then on everything."""
        self.viewers.append(viewer)
        if self._history and viewer.filter is None:
            viewer.socket.send(bytes(self._history))
        self._pump()

    def _begin(self, _answer: object) -> None:
        self._guest = SocketEnd(self._luxi.detach())
        self._pump()

    def _fail(self, err: errors.GanetiError) -> None:
        code = NODE_AWAY if isinstance(err, errors.RpcError) else GUEST_ENDED
        self.end(code, errors.text(err))

    def drop(self, viewer: Viewer, code: int, reason: str, *, keep: bool = False) -> None:
        """One viewer leaves; the line ends with the last one unless it is kept for another."""
        if viewer not in self.viewers:
            return
        self.viewers.remove(viewer)
        self._hub.part(viewer, code, reason)
        shared = keep and self._ticket.kind == "serial"
        if not self.viewers and not shared:
            self.end(code, reason)

    def end(self, code: int, reason: str) -> None:
        """Hang up on the guest and on all who look at it. Idempotent."""
        if self._ended:
            return
        self._ended = True
        self._hub.forget(self)
        self._luxi.close()
        if self._guest is not None:
            self._loop.forget(self._guest)
            self._guest.close()
        left, self.viewers = self.viewers, []
        for viewer in left:
            self._hub.part(viewer, code, reason)

    # bytes

    def _pump(self) -> None:
        if self._ended:
            return
        more = False
        for viewer in [*self.viewers]:
            more |= self._read_viewer(viewer)
        try:
            more |= self._copy_guest()
        except OSError:
            self.end(GUEST_ENDED, "the connection to the guest ended")
        if self._ended:
            return
        for viewer in [*self.viewers]:
            self._flush(viewer)
        self._watch()
        if more:
            self._loop.call_soon(self._pump)

    def _read_viewer(self, viewer: Viewer) -> bool:
        """Take what a viewer types, as far as there is room; whether there may be more."""
        data: bytes | None = None
        try:
            if len(self._to_guest) < ROOM:
                data = viewer.socket.receive()
            if data:
                self._take_input(viewer, data)
        except OSError:
            viewer.socket.ended = True
        except RfbError as err:
            self.drop(viewer, UNSUPPORTED, str(err))
            return False
        if viewer.socket.ended:
            self.drop(viewer, NORMAL, "left")
        return bool(data)

    def _take_input(self, viewer: Viewer, data: bytes) -> None:
        if viewer.filter is not None:
            data = viewer.filter.feed(data)
            if viewer.filter.had_input:
                viewer.last_input = SYSTEM.monotonic()
        elif viewer.ticket.mode == "view":
            return
        else:
            viewer.last_input = SYSTEM.monotonic()
        self._to_guest += data

    def _copy_guest(self) -> bool:
        guest = self._guest
        if guest is None:
            return False
        for _ in range(_ROUNDS):
            sent = guest.try_send(self._to_guest) if self._to_guest else 0
            del self._to_guest[:sent]
            data = guest.try_recv(_PIECE) if self._has_room() else None
            if data == b"":
                self.end(GUEST_ENDED, "the guest has ended, or moves to another node")
                return False
            if data:
                self._show(data)
            if not sent and not data:
                return False
        return True

    def _has_room(self) -> bool:
        return not self.viewers or min(v.socket.waiting for v in self.viewers) < ROOM

    def _show(self, data: bytes) -> None:
        if self._ticket.kind == "serial":
            self._history += data
            del self._history[:-HISTORY]
        for viewer in self.viewers:
            viewer.socket.send(data)

    def _flush(self, viewer: Viewer) -> None:
        try:
            viewer.socket.flush()
        except OSError:
            self.drop(viewer, NORMAL, "left")
            return
        if viewer.socket.waiting > BEHIND:
            self.drop(viewer, LIMIT, "reads too slowly")

    def _watch(self) -> None:
        reading = len(self._to_guest) < ROOM
        for viewer in self.viewers:
            waits = bool(viewer.socket.waiting)
            self._loop.watch(viewer.socket, self._pump, read=reading, write=waits)
        if self._guest is not None:
            room, out = self._has_room(), bool(self._to_guest)
            self._loop.watch(self._guest, self._pump, read=room, write=out)
