"""Download of an image from a URL, which is read once.

A module of its own, as programs that only check URLs must not load network libraries.
"""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from typing import Any

from ganeti import errors
from ganeti.base import sparse
from ganeti.images.source import Tell

#: Seconds without a byte after which a server is given up, and how often it is tried again.
_STALLED = 60.0
_ATTEMPTS = 5


def download(url: str, target: int, report: Tell, *, most: int) -> str:
    """Download a URL into a descriptor; returns the SHA-256 of the content.

    After a broken connection the download continues where it was, if the server can do that.
    Blocks until the end; ``report`` gets bytes done and bytes in all (0: unknown), and may raise.

    Raises:
        OpPrereqError: the server refuses, sends more than ``most`` bytes, or ends too early.
    """
    digest, done, size, tag = hashlib.sha256(), 0, 0, ""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with _open(url, done, tag) as answer:
                if done and answer.status != 206:
                    raise errors.make_invalid_error(
                        f"{url}: the connection broke after {done} bytes, and the server cannot"
                        " continue there; try again"
                    )
                size = size or answer.length or 0
                tag = tag or answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
                # What has come, not whole pieces: a slow server must not delay ``report``.
                while data := answer.read1(1 << 18):
                    if done + len(data) > most:
                        raise errors.make_invalid_error(f"{url} is larger than {most >> 20} MiB")
                    sparse.write(target, done, data)
                    digest.update(data)
                    done += len(data)
                    report(done, size)
            if not size or done == size:
                return digest.hexdigest()
            reason = f"it ended after {done} of {size} bytes"
        except urllib.error.HTTPError as err:
            raise errors.make_invalid_error(
                f"{url}: the server answers {err.code} {err.reason}"
            ) from err
        except (OSError, HTTPException) as err:
            reason = str(getattr(err, "reason", None) or err) or type(err).__name__
        if attempt == _ATTEMPTS or not done:
            raise errors.make_invalid_error(f"{url} cannot be downloaded: {reason}")
    raise errors.ProgrammerError("a download ended without a result")


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to URLs of the same kinds only, and never from https to http."""

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        if urllib.parse.urlsplit(newurl).scheme not in ("https", req.type):
            raise errors.make_invalid_error(
                f"{req.full_url} leads to {newurl[:120]}, which is not https"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(url: str, start: int, tag: str) -> Any:
    request = urllib.request.Request(url, headers={"User-Agent": "ganeti"})
    if start:
        request.add_header("Range", f"bytes={start}-")
        if tag:
            request.add_header("If-Range", tag)
    opener = urllib.request.build_opener(_SafeRedirects())
    return opener.open(request, timeout=_STALLED)
