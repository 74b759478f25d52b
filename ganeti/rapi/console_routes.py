"""Requests about consoles in a browser: what there is, a ticket, and the WebSocket itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from ganeti import errors
from ganeti.base.clock import SYSTEM
from ganeti.base.json_types import JsonObject
from ganeti.net.http_detached import Detached
from ganeti.rapi import failures, schemas
from ganeti.rapi.access_log import LATER
from ganeti.rapi.consoles import BAD_TICKET, Consoles
from ganeti.rapi.login import SESSIONS
from ganeti.rapi.route import ANYBODY, Call, Route
from ganeti.rapi.tickets import LIFE, Ticket, Tickets
from ganeti.rapi.waits import TAKE_OVER
from ganeti.rapi.websocket import Upgrade
from ganeti.rapi.writes import user_of

#: Keys of the environment of a request for the objects that these handlers need.
CONSOLES, TICKETS = "ganeti.consoles", "ganeti.tickets"
KINDS, MODES = ("serial", "vnc"), ("control", "view")


def _ask(call: Call) -> JsonObject:
    """Consoles of the instance in the path.

    Raises:
        Refused: 409, it does not run; 503, its node does not answer.
    """
    try:
        return call.luxi.query_consoles(call.name())
    except errors.HypervisorError as err:
        raise failures.Refused(409, errors.text(err)) from err
    except errors.RpcError as err:
        raise failures.Refused(503, errors.text(err)) from err


def _list(call: Call) -> JsonObject:
    found = _ask(call)
    hub: Consoles = _find(call, CONSOLES)
    return {**found, "open": hub.list_open(found["instance"])}


def _make_ticket(call: Call) -> JsonObject:
    body = call.body if isinstance(call.body, dict) else {}
    kind, mode = body.get("kind"), body.get("mode", "control")
    if kind not in KINDS or mode not in MODES or not set(body) <= {"kind", "mode"}:
        raise failures.make_bad_request(
            'The body must be {"kind": "serial" or "vnc", "mode": "control" or "view"}'
        )
    tickets: Tickets = _find(call, TICKETS)
    found = _ask(call)
    if kind not in found["kinds"]:
        there = ", ".join(found["kinds"]) or "none"
        raise failures.Refused(
            409, f"Instance {found['instance']} has no {kind} console; it has: {there}"
        )
    secret = tickets.add(
        Ticket(
            instance=found["instance"],
            kind=kind,
            mode=mode,
            user=call.identity.name,
            address=str(call.environ.get("REMOTE_ADDR", "")),
            author=user_of(call),
            session=call.session.id if call.session is not None else "",
            may_stay=_make_watch(call),
        )
    )
    return {
        "ticket": secret,
        "url": f"/2/consoles/{secret}",
        "expires": SYSTEM.now() + LIFE,
        "kind": kind,
        "mode": mode,
    }


def _make_watch(call: Call) -> Callable[[], bool]:
    session, sessions = call.session, call.environ.get(SESSIONS)
    if session is not None and sessions is not None:
        return lambda: sessions.is_alive(session)
    hub: Consoles = _find(call, CONSOLES)
    generation = hub.generation
    return lambda: hub.generation == generation


def _connect(call: Call) -> None:
    """Open a console with a ticket; all that follows is the business of the hub."""
    origin = call.environ.get("HTTP_ORIGIN")
    if origin is not None and urlsplit(origin).netloc != call.environ.get("HTTP_HOST"):
        raise failures.Refused(403, "A page of another site cannot open a console")
    hub: Consoles = _find(call, CONSOLES)
    tickets: Tickets = _find(call, TICKETS)
    upgrade = Upgrade(call.environ)
    session = call.session.id if call.session is not None else ""
    ticket = tickets.take(call.name(), session)
    if ticket is not None and not ticket.may_stay():
        ticket = None
    note = call.environ[LATER]() if LATER in call.environ else None

    def keep(connection: Detached) -> None:
        if note is not None:
            note(101, 0)
        if ticket is None:
            text = "the ticket is unknown, used, or older than 30 seconds: ask for another"
            hub.reject(connection, upgrade, BAD_TICKET, text)
        else:
            hub.add(connection, upgrade, ticket)

    take_over: Callable[[Callable[[Detached], None]], None] = _find(call, TAKE_OVER)
    take_over(keep)


def _find(call: Call, name: str) -> Any:
    try:
        return call.environ[name]
    except KeyError:
        raise failures.Refused(501, "This server shows no consoles") from None


_BODY = {
    "type": "object",
    "required": ["kind"],
    "properties": {
        "kind": {"type": "string", "enum": list(KINDS), "description": "Which console"},
        "mode": {
            "type": "string",
            "enum": list(MODES),
            "description": "Type in it, which ends the control of others, or only look",
        },
    },
}

ROUTES = (
    Route(
        "GET",
        "/2/instances/{instance_name}/consoles",
        "Consoles that can be opened in a browser, and who has them open; asks the node",
        _list,
        access=("read", "write"),
        answer=schemas.record(("instance", "uuid", "node", "kinds", "open")),
        statuses=(404, 409),
    ),
    Route(
        "POST",
        "/2/instances/{instance_name}/console-ticket",
        "A ticket that opens a console once, within 30 seconds",
        _make_ticket,
        access=("write",),
        body=lambda: _BODY,
        body_required=True,
        answer=schemas.record(("ticket", "url", "expires", "kind", "mode")),
        statuses=(404, 409),
    ),
    Route(
        "GET",
        "/2/consoles/{ticket}",
        "A console, as a WebSocket with binary frames; the ticket says which",
        _connect,
        access=ANYBODY,
        before_login=True,
        answer={"type": "string"},
        content_type="application/octet-stream",
        waits=1.0,
    ),
)
