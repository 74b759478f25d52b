"""The remote API as a WSGI application: routes by Falcon, one way through every request.

That way is: user, permission, arguments and body, ``If-Match``, the handler, the ETag. Each failure
becomes the documented error body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import parse_qs
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import falcon
import falcon.routing

from ganeti import constants, errors
from ganeti.base import jsonio
from ganeti.base.clock import SYSTEM
from ganeti.base.json_types import JsonObject
from ganeti.luxi.client import Client
from ganeti.rapi import conditional, failures, scrapes
from ganeti.rapi import routes as table
from ganeti.rapi.compression import accepts_gzip
from ganeti.rapi.identity import ANONYMOUS, Identity, list_permissions
from ganeti.rapi.route import NUMBERS, Call, Route
from ganeti.rapi.scope import limit_client
from ganeti.rapi.sessions import COOKIE, CSRF_HEADER, Session, Sessions, check_csrf
from ganeti.rapi.writes import describe_unknown_argument

#: Returns the identity of an Authorization header (or None) and an address, or raises the error.
Authenticate = Callable[[str | None, str], Identity]
#: Looks at a request that is allowed in general; raises the error that forbids it.
Guard = Callable[[Call], None]

_BODY = "ganeti.body"
#: Path of the route in the table, and when the request came in.
_PATH, _BEGIN = "ganeti.path", "ganeti.begin"
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
_NAME = re.compile(r"[\w.-]+")
_KEY = re.compile(r"[!-~]{1,128}")
_SERVER = f"Ganeti {constants.RELEASE_VERSION}"


class _Segment(falcon.routing.BaseConverter):
    """A name in a path; what is not a name is not a path of ours."""

    def convert(self, value: str) -> str | None:
        return value if _NAME.fullmatch(value) else None


class _Digits(falcon.routing.BaseConverter):
    """A number in a path, short enough to be one."""

    def convert(self, value: str) -> str | None:
        return value if value.isascii() and value.isdigit() and len(value) <= 18 else None


class _Resource:
    """One path; has a responder (``on_get``, ...) for every method, as Falcon wants it."""

    def __init__(self, api: _Api, methods: Mapping[str, Route]) -> None:
        allowed = ", ".join(sorted(methods))
        for method in _METHODS:
            route = methods.get(method)
            responder = (
                _make_unsupported(method, allowed) if route is None else api.responder(route)
            )
            setattr(self, f"on_{method.lower()}", responder)


def _make_unsupported(method: str, allowed: str) -> Callable[..., None]:
    def respond(_req: falcon.Request, _resp: falcon.Response, **_path: str) -> None:
        raise failures.Refused(
            501, f"{method} is not supported here; {allowed} is", {"Allow": allowed}
        )

    return respond


class _Api:
    """Common parts of all requests."""

    def __init__(
        self,
        luxi: Callable[[], Client],
        authenticate: Authenticate,
        guard: Guard | None,
        methods: Mapping[str, Mapping[str, Route]],
        sessions: Sessions,
    ) -> None:
        self._luxi = luxi
        self._sessions = sessions
        self._authenticate = authenticate
        self._guard = guard
        self._methods = methods

    def responder(self, route: Route) -> Callable[..., None]:
        """Make the function that Falcon calls for a request of the route."""
        reader = None if route.reads else conditional.target(route, self._methods)

        def respond(req: falcon.Request, resp: falcon.Response, **path: str) -> None:
            req.env[_PATH] = route.path
            names = dict(zip(route.variables, path.values(), strict=True))
            for name, text in names.items():
                _refuse_unusable(f"The {name} in the path", text)
            call = self._understand(route, req, names)
            match = req.get_header("If-Match")
            if match is not None and not route.reads:
                conditional.check_match(call, reader, match)
            answer = conditional.encode(route.handler(call))
            if route.reads and not route.waits:
                tag = conditional.etag(answer.data, answer.version)
                resp.set_header("ETag", tag)
                if conditional.is_unchanged(tag, req.get_header("If-None-Match")):
                    resp.status = falcon.HTTP_304
                    return
            resp.data, resp.status = answer.data, answer.status
            if answer.packed:
                resp.set_header("Vary", "Accept-Encoding")
                if accepts_gzip(req.get_header("Accept-Encoding")):
                    resp.data = answer.packed
                    resp.set_header("Content-Encoding", "gzip")
            if route.content_type.startswith("text/plain"):
                resp.content_type = route.content_type
            for name, text in answer.headers.items():
                resp.append_header(name, text)

        return respond

    def _understand(self, route: Route, req: falcon.Request, path: dict[str, str]) -> Call:
        identity, session = self._identify(route, req)
        req.env["REMOTE_USER"] = identity.name
        identity.require(list_permissions(route.method, route.path, route.access))
        call = Call(
            route=route,
            path=path,
            query=_arguments(route, req.query_string),
            body=_body(route, req),
            identity=identity,
            luxi=limit_client(self._luxi(), identity),
            key=_key(req.get_header("Idempotency-Key")),
            environ=req.env,
            session=session,
        )
        if self._guard is not None:
            self._guard(call)
        return call

    def _identify(self, route: Route, req: falcon.Request) -> tuple[Identity, Session | None]:
        """The user, and the session if neither a password nor a token is given."""
        header = req.get_header("Authorization")
        secrets = req.get_cookie_values(COOKIE)
        if header is None and route.before_login:
            known = self._sessions.find(secrets[0]) if secrets else None
            return (ANONYMOUS, None) if known is None else (known[1], known[0])
        if header is not None or not secrets:
            return self._authenticate(header, str(req.env.get("REMOTE_ADDR", ""))), None
        found = self._sessions.find(secrets[0]) if len(secrets) == 1 else None
        if found is None:
            raise errors.AuthenticationError("The session has ended; log in again")
        session, identity = found
        if req.method not in ("GET", "HEAD"):
            check_csrf(session, req.get_header(CSRF_HEADER))
        return identity, session


def _arguments(route: Route, text: str) -> JsonObject:
    given = parse_qs(text, keep_blank_values=True)
    known = {arg.name: arg for arg in route.query}
    found: JsonObject = {}
    for name, values in given.items():
        for value in values:
            _refuse_unusable(f"Query argument '{name}'" if name in known else "The query", value)
        if name in known:
            found[name] = known[name].read(values)
        elif not route.reads:
            # A misspelt dry-run must not become the real thing.
            raise failures.make_bad_request(describe_unknown_argument(name, route.query))
    for arg in route.query:
        if arg.required and not found.get(arg.name):
            raise failures.make_bad_request(f"Query argument '{arg.name}' is missing: {arg.doc}")
    return found


def _refuse_unusable(what: str, text: str) -> None:
    problem = jsonio.explain_refusal(text)
    if problem is not None:
        raise failures.make_bad_request(f"{what} cannot be read: {problem}")


def _body(route: Route, req: falcon.Request) -> object:
    """The JSON value of the body; None for an empty body, or where bodies are ignored."""
    data: bytes = req.env[_BODY]
    if not data.strip() or route.body is None:
        if route.body_required:
            raise failures.make_bad_request("This request needs a body with a JSON value")
        return None
    kind = (req.content_type or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise failures.Refused(
            415, f"The body must be application/json, not '{kind[:60] or 'of no type'}'"
        )
    try:
        return jsonio.read_request(data)
    except errors.ParseError as err:
        raise failures.make_bad_request(f"The body cannot be read: {errors.text(err)}") from err


def _key(text: str | None) -> str | None:
    if text is not None and not _KEY.fullmatch(text):
        raise failures.make_bad_request(
            "Idempotency-Key must have 1 to 128 visible ASCII characters and no spaces"
        )
    return text


def _answer_failure(
    req: falcon.Request, resp: falcon.Response, err: BaseException, _params: object
) -> None:
    status = failures.status_of(err)
    headers = failures.headers_of(err, status)
    if req.get_header("X-Requested-With") == "ui":
        # A browser would ask for a password in a dialog of its own.
        headers.pop("WWW-Authenticate", None)
    _refuse(resp, status, failures.text_of(err), headers)


def _answer_refusal(
    _req: falcon.Request, resp: falcon.Response, err: falcon.HTTPError, _params: object
) -> None:
    text = "There is no such path" if err.status_code == 404 else err.description or err.title
    _refuse(resp, err.status_code, str(text), dict(err.headers or {}))


def _refuse(resp: falcon.Response, status: int, text: str, headers: Mapping[str, str]) -> None:
    resp.status = status
    for name, value in headers.items():
        resp.set_header(name, value)
    resp.data = failures.body(status, text)


class _Every:
    """Common steps of every request, also of those that no route takes."""

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        req.env[_BEGIN] = SYSTEM.monotonic()
        resp.set_header("Server", _SERVER)
        resp.set_header("X-Content-Type-Options", "nosniff")
        if req.method not in _METHODS:
            raise failures.Refused(501, f"{req.method[:20]} is not supported")

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, _resource: object, _ok: bool
    ) -> None:
        method = req.method if req.method in _METHODS else "other"
        seconds = SYSTEM.monotonic() - req.env.get(_BEGIN, SYSTEM.monotonic())
        scrapes.REQUESTS.note(method, req.env.get(_PATH, ""), str(resp.status_code), seconds)


def _template(shape: str, route: Route) -> str:
    """Falcon's spelling of a path."""
    parts = shape.split("/")
    names = iter(route.variables)
    for index, part in enumerate(parts):
        if part.startswith("{"):
            kind = "digits" if next(names) in NUMBERS else "segment"
            parts[index] = f"{part[:-1]}:{kind}}}"
    return "/".join(parts)


def make_app(
    *,
    luxi: Callable[[], Client],
    authenticate: Authenticate,
    guard: Guard | None = None,
    routes: tuple[Route, ...] = table.ROUTES,
    sessions: Sessions | None = None,
) -> WSGIApplication:
    """The application. ``luxi`` returns the LUXI client of the calling thread."""
    methods = table.group_by_path(routes)
    api = _Api(luxi, authenticate, guard, methods, sessions or Sessions(lambda _backing: None))
    app = falcon.App(media_type="application/json", middleware=[_Every()])
    app.req_options.strip_url_path_trailing_slash = True
    app.router_options.converters["segment"] = _Segment
    app.router_options.converters["digits"] = _Digits
    app.add_error_handler(Exception, _answer_failure)
    app.add_error_handler(falcon.HTTPError, _answer_refusal)
    for shape, found in methods.items():
        app.add_route(_template(shape, next(iter(found.values()))), _Resource(api, found))

    def serve(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        # Read here, so that what goes wrong with the connection is the server's business.
        environ[_BODY] = environ["wsgi.input"].read()
        return app(environ, start)

    return serve
