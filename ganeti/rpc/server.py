"""The serving end of node calls: a WSGI application over the families of NodeCalls.

Wire form: ``POST /<procedure>`` with a JSON list of arguments; the answer is ``[true, result]``
or ``[false, error]`` with HTTP status 200 whenever the procedure was reached. Other statuses:
400 no POST or no JSON list, 403 caller not authorised, 404 no such procedure.

Arguments and results may contain secrets and are never logged.
"""

from __future__ import annotations

import contextvars
import itertools
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from wsgiref.types import StartResponse, WSGIEnvironment

from ganeti import errors
from ganeti.base import files, jsonio
from ganeti.base import log as base_log
from ganeti.base.clock import SYSTEM, Clock
from ganeti.net.http_detached import Keeper
from ganeti.rpc import leases
from ganeti.rpc.objects import NodeInstance
from ganeti.rpc.wire import JOB_HEADER, CallSpec, decode_args, encode, specs

log = logging.getLogger(__name__)

#: Says why a caller may not call, None when it may.
Authorise = Callable[[WSGIEnvironment], str | None]

#: Name of the node whose call the current thread serves, by its certificate.
CALLER: contextvars.ContextVar[str] = contextvars.ContextVar("caller", default="")

#: Hands the connection of the current call over, if its server can; see
#: :mod:`ganeti.net.http_detached`. The answer of the call is then up to the one who takes it.
TAKE_OVER: contextvars.ContextVar[Callable[[Keeper], None] | None] = contextvars.ContextVar(
    "take_over", default=None
)

#: Calls that take longer than this many seconds are logged at info.
SLOW_CALL = 5.0
#: Start of the text of an answer that a bug caused.
BUG_TEXT = "Error while executing backend function"


def _variable(header: str) -> str:
    """The name of a header in the WSGI environment."""
    return f"HTTP_{header.upper().replace('-', '_')}"


_JOB_HEADER = _variable(JOB_HEADER)
_LEASE_HEADER = _variable(leases.LEASE_HEADER)
_REASONS = {200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 409: "Conflict"}


class _RefusedError(Exception):
    """A request that does not reach a procedure: HTTP status and text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(status, text)
        self.status = status
        self.text = text


class RpcApp:
    """WSGI application that answers node calls. Thread-safe: one thread serves one call."""

    def __init__(
        self,
        families: Iterable[object],
        authorise: Authorise,
        *,
        authorise_node: Authorise | None = None,
        check_term: Callable[[int, str], None] = lambda _number, _master: None,
        lease: leases.Holding | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        """``families`` are the objects that implement the families of calls, each one once.

        ``authorise`` gets the WSGI environment (``ganeti.peer_digest`` is the SHA1 of the
        caller's certificate) and returns why the call is refused, or None. ``authorise_node`` is
        asked for calls that every node may make. ``check_term`` gets number and owner of the
        caller's master term and raises DeposedError for an old one. ``lease`` is what calls of the
        master renew.

        Raises:
            ProgrammerError: nobody, or more than one object, implements a call.
        """
        self._methods = find_methods(families)
        self._authorise = authorise
        self._authorise_node = authorise_node or authorise
        self._check = check_term
        self._lease = lease
        self._specs = specs()
        self._clock = clock
        self._lock = threading.Lock()
        self._running: dict[int, str] = {}

    def list_running(self) -> list[str]:
        """Names of the calls that are being served now, oldest first."""
        with self._lock:
            return list(self._running.values())

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            spec = self._admit(environ)
            self._take_grant(environ)
            arguments = _read_arguments(environ)
        except _RefusedError as err:
            log.warning("refused a request from %s: %s", environ.get("REMOTE_ADDR", "?"), err.text)
            return _answer(start_response, err.status, err.text.encode(), "text/plain")
        token = CALLER.set(str(environ.get("ganeti.peer_cn") or ""))
        taker = TAKE_OVER.set(environ.get("ganeti.take_over"))
        try:
            with base_log.set_context(job=_get_job(environ), call=spec.name, instance=""):
                envelope = self._run(spec, arguments)
        finally:
            TAKE_OVER.reset(taker)
            CALLER.reset(token)
        return _answer(start_response, 200, envelope, "application/json", self._stamp(environ))

    def _take_grant(self, environ: WSGIEnvironment) -> None:
        """Renew the lease of this node; only calls that carry the newest term can."""
        text = environ.get(_LEASE_HEADER)
        if self._lease is None or text is None or "HTTP_X_GANETI_EPOCH" not in environ:
            return
        try:
            self._lease.take(leases.read_grant(text))
        except errors.ParseError as err:
            raise _RefusedError(400, errors.text(err)) from err

    def _stamp(self, environ: WSGIEnvironment) -> list[tuple[str, str]]:
        if self._lease is None or "HTTP_X_GANETI_EPOCH" not in environ:
            return []
        return [(leases.STAMP_HEADER, leases.encode(self._lease.make_stamp()))]

    def _admit(self, environ: WSGIEnvironment) -> CallSpec:
        """The procedure that is requested, when the caller may call it."""
        name = str(environ.get("PATH_INFO", "")).removeprefix("/")
        spec = self._specs.get(name)
        may_any = spec is not None and spec.by_any_node
        refusal = (self._authorise_node if may_any else self._authorise)(environ)
        if refusal is not None:
            raise _RefusedError(403, refusal)
        self._check_term(environ.get("HTTP_X_GANETI_EPOCH"))
        if environ.get("REQUEST_METHOD") != "POST":
            raise _RefusedError(400, "node calls are POST requests")
        if spec is None:
            raise _RefusedError(404, f"no node call is named {name[:80]!r}")
        return spec

    def _check_term(self, header: str | None) -> None:
        """Refuse the call of a master that was replaced; callers without a term pass."""
        if header is None:
            return
        number, _, master = header.partition(" ")
        if not (number.isascii() and number.isdigit() and len(number) < 18):
            raise _RefusedError(400, "the header X-Ganeti-Epoch is not a number and name")
        try:
            self._check(int(number), master)
        except errors.DeposedError as err:
            raise _RefusedError(409, errors.text(err)) from err

    def _run(self, spec: CallSpec, arguments: Sequence[object]) -> bytes:
        started = self._clock.monotonic()
        try:
            log.debug("call %s begins", spec.name)
            with self._noted(spec.name):
                return jsonio.dumps_bytes([True, self._call(spec, arguments)])
        except errors.GanetiError as err:
            log.warning("call %s failed with %s", spec.name, err.wire_name)
            return jsonio.dumps_bytes([False, errors.encode(err)])
        except OSError as err:
            error = files.failure(err)
            log.error("call %s: %s", spec.name, errors.text(error))
            return jsonio.dumps_bytes([False, errors.encode(error)])
        except Exception as err:  # last frame of a call: a bug must not stop the daemon
            log.exception("call %s failed by a bug", spec.name)
            return jsonio.dumps_bytes([False, f"{BUG_TEXT}: {err}"])
        finally:
            seconds = self._clock.monotonic() - started
            level = logging.INFO if seconds > SLOW_CALL else logging.DEBUG
            log.log(level, "call %s took %.3f s", spec.name, seconds)

    def _call(self, spec: CallSpec, arguments: Sequence[object]) -> object:
        decoded = decode_args(spec, arguments)
        names = (each.name for each in decoded if isinstance(each, NodeInstance))
        with base_log.set_context(instance=next(names, "")):
            return encode(self._methods[spec.name](*decoded))

    @contextmanager
    def _noted(self, name: str) -> Iterator[None]:
        key = threading.get_ident()
        with self._lock:
            self._running[key] = name
        try:
            yield
        finally:
            with self._lock:
                del self._running[key]


def _get_job(environ: WSGIEnvironment) -> str:
    """For which job the caller says it calls, empty for none; only shown in logs."""
    header = str(environ.get(_JOB_HEADER) or "")
    return header if header.isascii() and header.isdigit() and len(header) < 18 else ""


def find_methods(families: Iterable[object]) -> dict[str, Callable[..., object]]:
    """The method for each node call, by its name.

    Raises:
        ProgrammerError: nobody, or more than one object, implements a call.
    """
    objects = list(families)
    methods: dict[str, Callable[..., object]] = {}
    for family, group in itertools.groupby(specs().values(), lambda spec: spec.family):
        names = [spec.name for spec in group]
        able = [each for each in objects if isinstance(each, family)]
        if len(able) != 1:
            raise errors.ProgrammerError(f"{len(able)} objects answer the node call {names[0]}")
        methods.update({name: getattr(able[0], name) for name in names})
    return methods


def _read_arguments(environ: WSGIEnvironment) -> list[object]:
    """The JSON list in the body; the HTTP server limits its size and the time to send it."""
    length = environ.get("CONTENT_LENGTH") or ""
    stream = environ["wsgi.input"]
    body = stream.read(int(length)) if length.isdigit() else stream.read()
    try:
        value = jsonio.read_request(body)
    except errors.ParseError as err:
        raise _RefusedError(400, f"the body is not JSON: {errors.text(err)}") from err
    if not isinstance(value, list):
        raise _RefusedError(400, "the body is not a JSON list of arguments")
    return value


def _answer(
    start_response: StartResponse,
    status: int,
    body: bytes,
    content_type: str,
    more: Iterable[tuple[str, str]] = (),
) -> list[bytes]:
    start_response(
        f"{status} {_REASONS[status]}",
        [("Content-Type", content_type), ("Content-Length", str(len(body))), *more],
    )
    return [body]
