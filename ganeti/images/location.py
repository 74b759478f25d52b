"""Images by their location: a URL, or a file in one directory of the node.

Root of a node decides which files can be images there. Else a parameter of an instance could put
any file of the node onto its disk.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ganeti import errors
from ganeti.base import files
from ganeti.images import source


def is_location(text: str) -> bool:
    """Whether it is a URL or a path, not the name of an image of ``gnt-image``. Pure."""
    return text.startswith("/") or source.is_url(text)


def check(text: str) -> None:
    """OpPrereqError for a location that no node would read. Pure."""
    if source.is_url(text):
        source.check(text)
    elif ".." in Path(text).parts or "\0" in text:
        raise errors.make_invalid_error(f"'{text[:80]}' is not a path without '..'")


def open_file(path: Path, allowed: Path) -> int:
    """A descriptor of a file below the directory that is allowed; links count where they lead.

    Raises:
        OpPrereqError: it lies elsewhere, is missing, or is not a regular file.
    """
    if not files.is_inside(path, allowed):
        raise errors.make_invalid_error(
            f"{path} is not below {allowed}, the only directory from which this node reads images;"
            " move it there, or make an image of it with gnt-image add"
        )
    try:
        fd = os.open(path.resolve(), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as err:
        raise errors.make_invalid_error(
            f"{path} cannot be read on this node: {err.strerror}"
        ) from err
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise errors.make_invalid_error(f"{path} is not a regular file")
    return fd
