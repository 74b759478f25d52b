"""Errors as HTTP answers: status, headers and the documented body; pure."""

from __future__ import annotations

import logging
from http import HTTPStatus

from ganeti import errors
from ganeti.base import jsonio

_LOG = logging.getLogger(__name__)

REALM = "Ganeti Remote API"
#: Seconds after which a client may try again while the master daemon is away.
RETRY_AFTER = 5
#: Statuses that stand for an error of a prerequisite; others have the one of their class.
_BY_CODE = {
    errors.ErrorCode.NOENT: HTTPStatus.NOT_FOUND,
    errors.ErrorCode.TEMP_NORES: HTTPStatus.SERVICE_UNAVAILABLE,
}


class Refused(errors.GenericError):
    """A request that HTTP itself has a status for."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


def make_bad_request(message: str) -> Refused:
    """400: the request cannot be understood; the text names what is wrong."""
    return Refused(HTTPStatus.BAD_REQUEST, message)


def make_not_found(message: str) -> Refused:
    """404: there is no such thing."""
    return Refused(HTTPStatus.NOT_FOUND, message)


def status_of(err: BaseException) -> int:
    """HTTP status of an error; 500 for what is not an error of ours."""
    if isinstance(err, Refused):
        return err.status
    if isinstance(err, errors.ConnectionClosedError):
        return HTTPStatus.SERVICE_UNAVAILABLE
    if isinstance(err, errors.OpPrereqError) and len(err.args) == 2:
        return _BY_CODE.get(err.args[1], err.http_status)
    if isinstance(err, errors.GanetiError):
        return err.http_status
    return HTTPStatus.INTERNAL_SERVER_ERROR


def headers_of(err: BaseException, status: int) -> dict[str, str]:
    """Headers that belong to the answer of an error."""
    headers = dict(err.headers) if isinstance(err, Refused) else {}
    if isinstance(err, errors.ThrottledError):
        headers["Retry-After"] = str(err.retry_after)
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = f'Basic realm="{REALM}"'
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(RETRY_AFTER)
    return headers


def text_of(err: BaseException) -> str:
    """The answer to the client. Of a bug it says only that there is one; the log has more."""
    if isinstance(err, errors.GanetiError):
        return errors.text(err)
    _LOG.error("a request failed", exc_info=err)
    return "Internal error; the log of the remote API on the master node has the details"


def body(status: int, text: str) -> bytes:
    """The documented body of an error: with the text as ``message``, or as ``explain``.

    The interface has words of its own as ``message`` of 400 and of failures of the server. Of
    other statuses that is the phrase of HTTP (``Not Found``), by which clients know them.
    """
    try:
        phrase = HTTPStatus(status).phrase
        standard = HTTPStatus(status).description or phrase
    except ValueError:
        phrase = standard = ""
    own = status == HTTPStatus.BAD_REQUEST or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if own and status != HTTPStatus.NOT_IMPLEMENTED:
        message, explain = text, standard
    else:
        message, explain = phrase, text
    value = {"code": int(status), "message": message, "explain": explain}
    return jsonio.dumps_bytes(value) + b"\n"
