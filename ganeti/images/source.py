"""The file that becomes an image: from a directory of uploads or from a URL, read once."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ganeti import errors
from ganeti.base import sparse

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,200}")
#: Prefix of ``gnt-image add`` before the name of a file.
_TOKEN = re.compile(r"^[0-9a-f]{8}-")
Tell = Callable[[int, int], None]


def is_url(source: str) -> bool:
    return "://" in source


def describe(source: str) -> str:
    """The name of a source for people: the URL, or the name of the file that was uploaded."""
    return source if is_url(source) else _TOKEN.sub("", source)


def check(source: str) -> None:
    """OpPrereqError for what is neither a URL of https or http nor the name of an upload."""
    if not is_url(source):
        if not _NAME.fullmatch(source):
            raise errors.make_invalid_error(
                f"'{source[:80]}' is neither a URL nor the name of a file in the directory of"
                " uploads; gnt-image add copies a file there by itself"
            )
        return
    shown = source[:80]
    try:
        parts = urllib.parse.urlsplit(source)
        host, _port = parts.hostname, parts.port
    except ValueError as err:
        raise errors.make_invalid_error(f"'{shown}' is not a URL: {err}") from err
    if parts.username or parts.password:
        raise errors.make_invalid_error(
            "the job would show the password in the URL; download the file and add that"
        )
    if parts.scheme not in ("http", "https") or not host:
        raise errors.make_invalid_error(f"'{shown}' is not a URL of https or http")
    if not source.isascii() or not source.isprintable() or " " in source:
        raise errors.make_invalid_error(
            f"'{shown}' has characters that a URL cannot have; write them as %20 and the like"
        )


def copy_upload(path: Path, target: int, report: Tell) -> str:
    """Copy an uploaded file to a descriptor and remove it; returns its SHA-256.

    Raises:
        OpPrereqError: there is none, or it is not a regular file.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as err:
        raise errors.make_invalid_error(
            f"the upload {path.name} cannot be read on the master: {err.strerror}; add it again"
        ) from err
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise errors.make_invalid_error(f"the upload {path.name} is not a regular file")
        # The copy that is read belongs to the job from here on, whatever becomes of it.
        path.unlink(missing_ok=True)
        return copy_file(fd, target, report)
    finally:
        os.close(fd)


def copy_file(fd: int, target: int, report: Tell) -> str:
    """Copy an open file to a descriptor, without its holes; returns its SHA-256. OSError."""
    size = os.fstat(fd).st_size
    digest, position = hashlib.sha256(), 0
    for piece in sparse.pieces(fd, size):
        if piece.data is None:
            _hash_zeros(digest, piece.size)
        else:
            digest.update(piece.data)
            sparse.write(target, position, piece.data)
        position += piece.size
        report(position, size)
    os.ftruncate(target, size)
    return digest.hexdigest()


def _hash_zeros(digest: Any, size: int) -> None:
    zeros = bytes(min(size, 1 << 20))
    while size:
        digest.update(zeros[:size])
        size -= min(size, len(zeros))
