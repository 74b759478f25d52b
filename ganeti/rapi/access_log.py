"""One line for each request in the common log format, in a file of its own."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from ganeti.base import log

if TYPE_CHECKING:
    from _typeshed import OptExcInfo
from ganeti.base.clock import SYSTEM

_LOG = logging.getLogger("ganeti.rapi.access")
#: Key of the function that logs a request which is answered later (status, bytes).
LATER = "ganeti.log_later"
#: A ticket opens a console for anyone who has it.
_TICKET = re.compile(r"(/2/consoles/+)[^/?]+")
#: Query of the request by which a browser comes back from an identity provider.
_CODE = re.compile(r"(/2/oidc/+[^/?]+/+callback/*\?).*")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def setup(path: Path) -> None:
    """Write requests to a file from now on (mode 0600, opened again after rotation)."""
    log.send_to_file(_LOG, path)
    _LOG.setLevel(logging.INFO)


def line(environ: WSGIEnvironment, status: str, size: int, now: float) -> str:
    """``host - user [time] "request" status size``; the size is ``-`` when it is not known.

    Tickets of consoles, and codes of identity providers, are masked.
    """
    moment = time.localtime(now)
    stamp = time.strftime(f"%d/{_MONTHS[moment.tm_mon - 1]}/%Y:%H:%M:%S %z", moment)
    query = environ.get("QUERY_STRING", "")
    target = environ.get("PATH_INFO", "") + (f"?{query}" if query else "")
    target = _CODE.sub(r"\1***", _TICKET.sub(r"\1***", target))
    request = f"{environ.get('REQUEST_METHOD', '-')} {target} {environ.get('SERVER_PROTOCOL', '')}"
    user = (environ.get("REMOTE_USER") or "-").replace(" ", "_")
    quoted = request.replace("\\", "\\\\").replace('"', '\\"')
    host = environ.get("REMOTE_ADDR") or "-"
    return f'{host} - {user} [{stamp}] "{quoted}" {status[:3]} {size or "-"}'


def logged(app: WSGIApplication) -> WSGIApplication:
    """The application with a line for each answer."""

    def serve(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        seen: list[str] = []
        environ[LATER] = lambda: _make_writer(environ, seen)

        def note(
            status: str,
            headers: list[tuple[str, str]],
            exc_info: OptExcInfo | None = None,
            /,
        ) -> Callable[[bytes], object]:
            if seen != [""]:
                seen[:] = [status]
            return start(status, headers, exc_info)

        try:
            answer = app(environ, note)
        except BaseException:  # an interrupt too: write the line of the log and raise it
            _LOG.info("%s", line(environ, "500", 0, SYSTEM.now()))
            raise
        return _count_bytes(answer, environ, seen)

    return serve


def _make_writer(environ: WSGIEnvironment, seen: list[str]) -> Callable[[int, int], None]:
    """The request's line is written by a call of the result, and by nobody else."""
    seen[:] = [""]

    def write(status: int, size: int) -> None:
        _LOG.info("%s", line(environ, str(status), size, SYSTEM.now()))

    return write


def _count_bytes(
    answer: Iterable[bytes], environ: WSGIEnvironment, seen: list[str]
) -> Iterator[bytes]:
    size = 0
    try:
        for piece in answer:
            size += len(piece)
            yield piece
    finally:
        close = getattr(answer, "close", None)
        if close is not None:
            close()
        if seen != [""]:
            _LOG.info("%s", line(environ, seen[0] if seen else "500", size, SYSTEM.now()))
