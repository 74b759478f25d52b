"""Requests to servers outside of the cluster, over HTTPS that is verified.

Certificates of the cluster play no part: a server is verified with the authorities of the system,
or with those that an administrator names for it. Redirects are not followed.
"""

from __future__ import annotations

import http.client
import ssl
import threading
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field

from ganeti import errors

#: Bytes of an answer that are read unless told otherwise.
MOST = 1 << 16


@dataclass(frozen=True)
class Answer:
    """The answer of a server; names of headers are in small letters."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def make_context(authority: str | None) -> ssl.SSLContext:
    """Verifies servers with certificates in PEM, None for those of the system.

    Raises:
        ParameterError: they cannot be read.
    """
    if authority is not None and not authority.strip():
        # By an empty text the library means the authorities of the system.
        raise errors.ParameterError("there is no certificate of the authority")
    try:
        context = ssl.create_default_context(cadata=authority)
    except (ssl.SSLError, ValueError) as err:
        raise errors.ParameterError(
            f"the certificates of the authority cannot be read: {err}"
        ) from err
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def check_url(url: str) -> urllib.parse.SplitResult:
    """The parts of an https URL.

    Raises:
        ParameterError: it is not one, or has a user name in it; the text does not show it.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError as err:
        raise errors.ParameterError(f"that is not a URL: {err}") from err
    if parts.scheme != "https" or not host:
        raise errors.ParameterError("the URL must begin with https:// and a host")
    if not (url.isascii() and url.isprintable() and " " not in url):
        raise errors.ParameterError("the URL has characters that must be written as %20 and so on")
    if parts.username is not None:
        raise errors.ParameterError("a user name or password in the URL is not sent; leave it out")
    return parts


def request(
    method: str,
    url: str,
    *,
    context: ssl.SSLContext,
    timeout: float,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    most: int = MOST,
) -> Answer:
    """One request over a connection of its own; blocks ``timeout`` seconds at most for each part.

    A server that sends its answer in crumbs is cut off after twice that time.

    Raises:
        RemoteError: there was no answer, or it was longer than ``most`` bytes.
        ParameterError: the URL is wrong.
    """
    parts = check_url(url)
    assert parts.hostname is not None
    link = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout, context=context)
    path = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
    late = threading.Event()
    end = threading.Timer(2 * timeout, _cut, (link, late))
    end.daemon = True
    try:
        link.connect()
        end.start()
        link.request(method, path, body=body, headers={"User-Agent": "ganeti", **(headers or {})})
        answer = link.getresponse()
        content = answer.read(most + 1)
        if late.is_set():  # the library takes the end of a connection for that of the headers
            raise errors.RemoteError(f"{parts.netloc} takes too long to answer")
        if len(content) > most:
            raise errors.RemoteError(f"{parts.netloc} answers with more than {most} bytes")
        known = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, content, known)
    except (OSError, http.client.HTTPException, ValueError) as err:
        raise errors.RemoteError(f"{parts.netloc}: {_explain(err)}") from err
    finally:
        end.cancel()
        link.close()


def _cut(link: http.client.HTTPSConnection, late: threading.Event) -> None:
    """End a connection that another thread reads from."""
    late.set()
    sock = link.sock
    if sock is not None:
        try:
            sock.shutdown(2)
        except OSError:
            return  # it has ended by itself


def _explain(err: Exception) -> str:
    if isinstance(err, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {err.verify_message}"
    return str(getattr(err, "strerror", None) or err) or type(err).__name__
