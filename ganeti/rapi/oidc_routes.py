"""Log-in by OpenID Connect: where it begins, and where browsers come back."""

from __future__ import annotations

import logging
from http.cookies import CookieError, SimpleCookie
from typing import Any

from ganeti import errors
from ganeti.rapi import failures, schemas
from ganeti.rapi.login import SESSIONS, cookie_of
from ganeti.rapi.oidc import ATTEMPT, Providers, Rejected
from ganeti.rapi.route import ANYBODY, Arg, ArgKind, Call, Ready, Route
from ganeti.rapi.sessions import Sessions

log = logging.getLogger(__name__)

#: Key of the environment of a request for the providers.
PROVIDERS = "ganeti.providers"
#: Binds a log-in to the browser that began it. Lax: it must come along from the provider's page.
COOKIE = "__Host-ganeti-login"
_PAGE = "/ui/"
_ANSWER = ("code", "state", "error", "error_description", "iss", "session_state")


def _begin(call: Call) -> Ready:
    providers, _sessions = _find(call)
    try:
        place, secret = providers.begin(call.path["provider"], _address(call))
    except Rejected as err:
        return _return_with(call, err)
    cookie = f"{COOKIE}={secret}; Secure; HttpOnly; SameSite=Lax; Path=/; Max-Age={int(ATTEMPT)}"
    return _redirect(place, cookie)


def _finish(call: Call) -> Ready:
    providers, sessions = _find(call)
    answer = {name: str(call.query[name]) for name in _ANSWER if name in call.query}
    try:
        backing = providers.finish(call.path["provider"], answer, _read_cookie(call))
    except Rejected as err:
        return _return_with(call, err)
    if call.session is not None:  # of the same browser
        sessions.end(call.session.id, call.identity)
    agent = call.environ.get("HTTP_USER_AGENT", "")
    try:
        _session, secret = sessions.open(backing, _address(call), agent)
    except errors.AuthenticationError as err:
        return _return_with(call, Rejected("expired", errors.text(err)))
    return _redirect(_PAGE, cookie_of(secret))


def _return_with(call: Call, err: Rejected) -> Ready:
    """Back to the log-in page, which has a text for the word; the log has more."""
    log.warning("log-in by %s from %s: %s", call.path["provider"], _address(call), errors.text(err))
    return _redirect(f"{_PAGE}?login={err.code}", f"{COOKIE}=; Secure; Path=/; Max-Age=0")


def _redirect(place: str, cookie: str) -> Ready:
    headers = {
        "Location": place,
        "Set-Cookie": cookie,
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
    }
    return Ready(b"", headers=headers, status=303)


def _read_cookie(call: Call) -> str:
    try:
        found = SimpleCookie(str(call.environ.get("HTTP_COOKIE", ""))).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _address(call: Call) -> str:
    return str(call.environ.get("REMOTE_ADDR", ""))


def _find(call: Call) -> tuple[Providers, Sessions]:
    try:
        return call.environ[PROVIDERS], call.environ[SESSIONS]
    except KeyError:
        raise failures.Refused(501, "This server keeps no sessions") from None


def _route(path: str, summary: str, handler: Any, query: tuple[Arg, ...] = ()) -> Route:
    return Route(
        "GET",
        path,
        summary,
        handler,
        access=ANYBODY,
        before_login=True,
        query=query,
        answer=schemas.NULL,
        statuses=(303,),
        waits=1.0,
    )


ROUTES = (
    _route("/2/oidc/{provider}/login", "Send a browser to an identity provider", _begin),
    _route(
        "/2/oidc/{provider}/callback",
        "Where an identity provider sends browsers back to",
        _finish,
        tuple(Arg(name, ArgKind.TEXT, "From the provider") for name in _ANSWER),
    ),
)
