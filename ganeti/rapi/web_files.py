"""The files of the web interface, served below ``/ui/``; the API itself knows nothing of them.

They are read once, when the daemon starts, and kept; a compressed copy is made when a browser asks
for it first. A browser may keep them, but asks whether they are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from ganeti.rapi import compression, failures

DIRECTORY: Final = Path(__file__).resolve().parent.parent / "web"
ROOT: Final = "/ui/"
_INDEX = "index.html"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'{styles}; img-src 'self'{images};"
    " connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self';"
    " frame-ancestors 'none'{types}"
)
#: No markup is ever made of text: the browser itself refuses it (trusted types).
STRICT: Final = _POLICY.format(styles="", images="", types="; require-trusted-types-for 'script'")
#: The screens of consoles set styles of their own, and one shows images that it made.
CONSOLE: Final = _POLICY.format(styles=" 'unsafe-inline'", images=" data: blob:", types="")
#: Additional headers of every answer.
HEADERS: Final = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-cache"),
)


@dataclass(frozen=True)
class File:
    """One file as it is sent: its bytes and its headers."""

    data: bytes
    kind: str
    tag: str
    policy: str

    @cached_property
    def packed(self) -> bytes | None:
        """gzip of the bytes, where that is shorter."""
        packed = compression.pack(self.data)
        return packed if len(packed) < len(self.data) else None


def read(directory: Path = DIRECTORY) -> Mapping[str, File]:
    """All files below the directory by path; of suffixes that are not listed, none."""
    return {
        str(path.relative_to(directory)): _file(path)
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.suffix in _TYPES
    }


def _file(path: Path) -> File:
    data = path.read_bytes()
    digest = hashlib.blake2b(data, digest_size=12).hexdigest()
    policy = CONSOLE if path.name == "console.html" else STRICT
    return File(data, _TYPES[path.suffix], f'"{digest}"', policy)


def find(files: Mapping[str, File], path: str) -> File | None:
    """The file of a path below ``/ui/``; addresses of pages (without a dot) are the index."""
    name = path.removeprefix(ROOT)
    found = files.get(name)
    if found is None and "." not in name.rpartition("/")[2]:
        return files.get(_INDEX)
    if found is None and name.startswith(_PAGES):
        return files.get(_INDEX)
    return found


#: Pages of single objects, whose names have dots.
_PAGES: Final = (
    "instances/",
    "nodes/",
    "groups/",
    "disks/",
    "networks/",
    "images/",
    "jobs/",
    "filters/",
    "os/",
    "reservations/",
    "backups/",
    "exports/",
)


def with_web(app: WSGIApplication, files: Mapping[str, File] | None = None) -> WSGIApplication:
    """The application with the web interface below ``/ui/``; a browser at ``/`` is sent there."""
    known = read() if files is None else files

    def serve(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        path = str(environ.get("PATH_INFO", ""))
        if path == "/ui" or (path == "/" and "text/html" in environ.get("HTTP_ACCEPT", "")):
            start("302 Found", [("Location", ROOT), ("Content-Length", "0")])
            return [b""]
        if not path.startswith(ROOT):
            return app(environ, start)
        environ["wsgi.input"].read()
        return _answer(find(known, path), environ, start)

    return serve


def _answer(file: File | None, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
    method = environ.get("REQUEST_METHOD")
    if method not in ("GET", "HEAD"):
        return _refuse(501, f"{str(method)[:20]} is not supported here; GET is", start)
    if file is None:
        refused = _refuse(404, "There is no such file", start)
        return refused if method == "GET" else [b""]
    headers = [
        ("Content-Security-Policy", file.policy),
        *HEADERS,
        ("ETag", file.tag),
        ("Vary", "Accept-Encoding"),
    ]
    if file.tag in str(environ.get("HTTP_IF_NONE_MATCH", "")):
        start("304 Not Modified", headers)
        return [b""]
    data = file.data
    if compression.accepts_gzip(environ.get("HTTP_ACCEPT_ENCODING")) and file.packed is not None:
        data = file.packed
        headers.append(("Content-Encoding", "gzip"))
    start("200 OK", [*headers, ("Content-Type", file.kind), ("Content-Length", str(len(data)))])
    return [data if method == "GET" else b""]


def _refuse(status: int, text: str, start: StartResponse) -> Iterable[bytes]:
    body = failures.body(status, text)
    phrase = "Not Found" if status == 404 else "Not Implemented"
    start(
        f"{status} {phrase}",
        [("Content-Type", "application/json"), ("Content-Length", str(len(body))), *HEADERS],
    )
    return [body]
