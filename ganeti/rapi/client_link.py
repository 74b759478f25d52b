"""Talking to a remote API: addresses, TLS, requests, errors; what its client is built on."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from ganeti import constants, errors
from ganeti.base import jsonio
from ganeti.net import http_client
from ganeti.net.http_link import BadStatus, Call, CallError, Response
from ganeti.net.tls.contexts import public_client_context
from ganeti.net.tls.stream import TLSError

USER_AGENT = f"Ganeti RAPI Client {constants.RELEASE_VERSION}"
#: Arguments of a query string.
Query = list[tuple[str, Any]]
_OK = 200


class Error(Exception):
    """Base of all errors of the client."""


class GanetiApiError(Error):
    """The remote API refused or failed, or cannot be reached; ``code`` is the HTTP status."""

    def __init__(self, msg: str, code: int | None = None) -> None:
        super().__init__(msg)
        self.code = code


class CertificateError(GanetiApiError):
    """The certificate of the server is not the one to trust."""


@dataclass
class Settings:
    """How to connect; what :func:`ganeti.rapi.client.GenericCurlConfig` sets."""

    ca_file: Path | None = None
    #: trust what this machine trusts
    system: bool = False
    verify_hostname: bool = False
    connect_timeout: float = 10.0
    timeout: float = 120.0


#: Changes settings in place.
Configure = Callable[[Settings], None]


class Link:
    """Requests to one server over kept connections; may be used by many threads."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        settings: Settings,
        username: str | None = None,
        password: str | None = None,
        token: str | None = None,
    ) -> None:
        if token is not None and password is not None:
            raise Error("Name a password or a token, not both")
        self._host = host
        self._port = port
        self._settings = settings
        self._auth = _authorization(username, password, token)
        try:
            context = public_client_context(settings.ca_file, system=settings.system)
        except errors.X509CertError as err:
            raise CertificateError(": ".join(map(str, err.args))) from err
        self._http = http_client.Client(context)

    def close(self) -> None:
        """Close all connections; requests fail from now on."""
        self._http.stop()

    def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        content: object = None,
        *,
        timeout: float | None = None,
    ) -> Any:
        """Send a request and return the JSON value of the answer.

        Raises:
            GanetiApiError: any status but 200, or no answer.
        """
        body = b"" if content is None else jsonio.dumps_bytes(content)
        call = self._call(method, path, query, body, timeout)
        try:
            response = self._http.perform(call)
        except CallError as err:
            raise _unreachable(err) from err
        if response.status != _OK:
            raise _make_error(response)
        if not response.body.strip():
            return None
        try:
            return jsonio.loads(response.body)
        except errors.ParseError as err:
            raise GanetiApiError(f"The answer is not JSON: {errors.text(err)}") from err

    def lines(
        self, path: str, query: Query, headers: Mapping[str, str], silence: float
    ) -> Iterator[str]:
        """The lines of an endless answer; errors as in :meth:`request`."""
        call = self._call("GET", path, query, b"", None, headers)
        try:
            for line in self._http.stream(call, silence):
                yield line.decode("utf-8", "replace")
        except BadStatus as err:
            raise _make_error(err.response) from err
        except CallError as err:
            raise _unreachable(err) from err

    def _call(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: bytes,
        timeout: float | None,
        headers: Mapping[str, str] | None = None,
    ) -> Call:
        given = [(name, _text(value)) for name, value in query or () if value is not None]
        more = {"Accept": "application/json", "User-Agent": USER_AGENT, **(headers or {})}
        if self._auth is not None:
            more["Authorization"] = self._auth
        return Call(
            self._host,
            self._port,
            quote(path, safe="/") + (f"?{urlencode(given)}" if given else ""),
            body,
            timeout or self._settings.timeout,
            self._settings.connect_timeout,
            headers=tuple(more.items()),
            method=method,
            check_host=self._settings.verify_hostname,
        )


def _authorization(username: str | None, password: str | None, token: str | None) -> str | None:
    if token is not None:
        return f"Bearer {token}"
    if password is not None:
        if username is None:
            raise Error("A password needs a user name")
        return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
    if username is not None:
        raise Error("Specified username without a password")
    return None


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _unreachable(err: CallError) -> GanetiApiError:
    if isinstance(err.__cause__, TLSError):
        return CertificateError(f"SSL certificate error {errors.text(err)}")
    return GanetiApiError(errors.text(err))


def _make_error(response: Response) -> GanetiApiError:
    try:
        value = jsonio.loads(response.body)
        text = str(value["message"])
        if text == HTTPStatus(response.status).phrase and value.get("explain"):
            text = str(value["explain"])
    except (errors.ParseError, AttributeError, KeyError, TypeError, ValueError):
        text = response.body[:200].decode("utf-8", "replace")
    return GanetiApiError(f"HTTP {response.status}: {text}", code=response.status)
