"""Logging in and out from a browser, and the list of sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from ganeti.base.json_types import JsonObject
from ganeti.rapi import failures, schemas
from ganeti.rapi.backing import Backing
from ganeti.rapi.identity import Identity
from ganeti.rapi.route import ANYBODY, KNOWN, Call, Ready, Route
from ganeti.rapi.sessions import COOKIE, Session, Sessions

#: Keys of the environment of a request for the objects that these handlers need.
SESSIONS, DOOR = "ganeti.sessions", "ganeti.door"
_CURRENT = "current"
#: Origins of requests, in the words of browsers, that are not pages of ours.
_STRANGE = frozenset({"cross-site", "same-site"})


class Door(Protocol):
    """Log-in of users: see :class:`ganeti.rapi.authenticate.Authenticator`."""

    def log_in(self, name: str, password: bytes, address: str) -> Backing: ...

    def log_in_by_token(self, text: str, address: str) -> Backing: ...

    def identify(self, backing: Backing) -> Identity | None: ...

    def list_methods(self) -> list[dict[str, str]]: ...


def cookie_of(secret: str) -> str:
    """The header that sets the cookie; an empty secret takes it away."""
    end = "" if secret else "; Max-Age=0"
    return f"{COOKIE}={secret}; Secure; HttpOnly; SameSite=Strict; Path=/{end}"


def describe(session: Session, identity: Identity) -> JsonObject:
    """Describe a session for a page, after log-in and when it is loaded again."""
    return {
        "id": session.id,
        "user": identity.name,
        "access": {
            "permissions": sorted(identity.permissions),
            "limits": msgspec.to_builtins(identity.limits),
        },
        "csrf": session.csrf,
        "expires": session.expires,
    }


def _open(call: Call) -> Ready:
    if call.environ.get("HTTP_SEC_FETCH_SITE") in _STRANGE:
        raise failures.Refused(403, "A page of another site cannot log in here")
    sessions, door = _find(call)
    address = str(call.environ.get("REMOTE_ADDR", ""))
    body = _read_body(call.body)
    if "token" in body:
        backing = door.log_in_by_token(body["token"], address)
    else:
        password = body["password"].encode("utf-8", "replace")
        backing = door.log_in(body["user"], password, address)
    if call.session is not None:  # of the same browser
        sessions.end(call.session.id, call.identity)
    session, secret = sessions.open(backing, address, call.environ.get("HTTP_USER_AGENT", ""))
    identity = door.identify(backing)
    if identity is None:  # changed in this very moment
        raise failures.Refused(401, "The user or token has just changed; log in again")
    return Ready.encode(describe(session, identity), {"Set-Cookie": cookie_of(secret), **_PRIVATE})


def _read_body(body: object) -> Mapping[str, str]:
    known = ({"token"}, {"user", "password"})
    if not isinstance(body, dict) or set(body) not in known:
        raise failures.make_bad_request(
            'The body must be {"user": "...", "password": "..."} or {"token": "..."}'
        )
    if not all(isinstance(value, str) and value for value in body.values()):
        raise failures.make_bad_request("User, password and token are texts that are not empty")
    return body


def _list(call: Call) -> Ready:
    sessions, _door = _find(call)
    current = call.session
    return Ready.encode(
        [
            {
                "id": item.id,
                "user": item.user,
                "address": item.address,
                "agent": item.agent,
                "created": item.created,
                "used": item.used,
                "expires": item.expires,
                "current": current is not None and item.id == current.id,
            }
            for item in sessions.visible(call.identity)
        ],
        _PRIVATE,
    )


def _current(call: Call) -> Ready:
    return Ready.encode(describe(_require(call), call.identity), _PRIVATE)


def _close(call: Call) -> Ready:
    """End a session by its id."""
    sessions, _door = _find(call)
    number = call.path["id"]
    if not sessions.end(number, call.identity):
        raise failures.make_not_found(f"You have no session '{number[:40]}'")
    ended_own = call.session is not None and call.session.id == number
    return Ready.encode(None, {"Set-Cookie": cookie_of("")} if ended_own else {})


def _close_current(call: Call) -> Ready:
    sessions, _door = _find(call)
    sessions.end(_require(call).id, call.identity)
    return Ready.encode(None, {"Set-Cookie": cookie_of("")})


def _require(call: Call) -> Session:
    if call.session is None:
        raise failures.make_not_found(
            f"This request came with no session but with a password or token: {call.identity.name}"
        )
    return call.session


def _list_methods(call: Call) -> list[dict[str, str]]:
    _sessions, door = _find(call)
    return door.list_methods()


def _find(call: Call) -> tuple[Sessions, Door]:
    try:
        return call.environ[SESSIONS], call.environ[DOOR]
    except KeyError:
        raise failures.Refused(501, "This server keeps no sessions") from None


_PRIVATE = {"Cache-Control": "no-store"}
_LOGIN = {
    "type": "object",
    "properties": {
        "user": {**schemas.TEXT, "description": "User, with `password`"},
        "password": {**schemas.TEXT, "description": "Password of the user"},
        "token": {**schemas.TEXT, "description": "A token, in place of user and password"},
    },
}
_SESSION = {
    "type": "object",
    "required": ["id", "user", "access", "csrf", "expires"],
    "properties": {
        "id": schemas.TEXT,
        "user": schemas.TEXT,
        "access": schemas.OBJECT,
        "csrf": schemas.TEXT,
        "expires": {"type": "number"},
    },
}
_LISTED = schemas.record(
    ("id", "user", "address", "agent", "created", "used", "expires", "current")
)

ROUTES = (
    Route(
        "GET",
        "/2/login-methods",
        "Ways to log in from a browser",
        _list_methods,
        access=ANYBODY,
        before_login=True,
        answer={"type": "array", "items": {"type": "object", "required": ["name"]}},
    ),
    Route(
        "POST",
        "/2/sessions",
        "Log in: the answer sets the cookie of a session",
        _open,
        access=ANYBODY,
        before_login=True,
        body=lambda: _LOGIN,
        body_required=True,
        answer=_SESSION,
    ),
    Route(
        "GET",
        "/2/sessions",
        "Your sessions; with write those of all users",
        _list,
        access=KNOWN,
        answer={"type": "array", "items": _LISTED},
    ),
    Route(
        "GET",
        f"/2/sessions/{_CURRENT}",
        "The session of this request",
        _current,
        access=KNOWN,
        answer=_SESSION,
        statuses=(404,),
    ),
    Route(
        "DELETE",
        f"/2/sessions/{_CURRENT}",
        "Log out",
        _close_current,
        access=KNOWN,
        answer=schemas.NULL,
        statuses=(404,),
    ),
    Route(
        "DELETE",
        "/2/sessions/{id}",
        "End a session; with write also that of another user",
        _close,
        access=KNOWN,
        answer=schemas.NULL,
        statuses=(404,),
    ),
)
