"""Programs that others provide: where they are, and whether this machine may run them.

Only root, or the user of the daemon, may be able to change what is run: the file, each directory
and each symbolic link on the way to it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

#: The kernel follows as many symbolic links.
_MOST_LINKS = 40
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def find(name: str, directories: Iterable[Path]) -> Path | None:
    """The executable file of a name in the first of some directories that has one, or None."""
    candidates = (directory / name for directory in directories)
    return next((each for each in candidates if each.is_file() and os.access(each, os.X_OK)), None)


def flaw(path: str) -> str | None:
    """Why a program must not be run, beginning with its path; None when it may be."""
    if not os.path.isabs(path) or "\0" in path:
        return f"{path} is not a full path"
    try:
        facts = os.stat(path)
        if not stat.S_ISREG(facts.st_mode):
            return f"{path} is not a regular file"
        if not os.access(path, os.X_OK):
            return f"{path} cannot be executed"
    except (FileNotFoundError, NotADirectoryError):
        return f"{path} does not exist"
    except OSError as err:
        return f"{path} cannot be read: {err.strerror}"
    return exposure(path)


def exposure(path: str) -> str | None:
    """How others could change a file, beginning with its path; None when nobody can.

    A link on the way is fine when all that it leads through is.
    """
    try:
        places = [(place, _openness(os.lstat(place))) for place in _way(path)]
    except OSError as err:
        return f"{path} cannot be read: {err.strerror}"
    for place, reason in places:
        if reason is not None:
            return f"{path} is not safe: {place} {reason}"
    return None


def _way(path: str) -> Iterator[str]:
    """Every directory, symbolic link and the file that the kernel passes, from the root on."""
    here, links = "/", 0
    todo = list(reversed(PurePosixPath(path).parts[1:]))
    yield here
    while todo:
        part = todo.pop()
        here = os.path.dirname(here) if part == ".." else os.path.join(here, part)
        yield here
        if os.path.islink(here):
            links += 1
            if links > _MOST_LINKS:
                raise OSError(0, "too many symbolic links")
            target = PurePosixPath(os.readlink(here))
            here = "/" if target.is_absolute() else os.path.dirname(here)
            todo.extend(reversed(target.parts[1:] if target.is_absolute() else target.parts))


def _openness(facts: os.stat_result) -> str | None:
    """How another user could change the file; None when none can."""
    if facts.st_uid not in (0, os.geteuid()):
        return f"belongs to the user with the uid {facts.st_uid}, not to root"
    # In a directory with the sticky bit only the owner of a file replaces it.
    guarded = stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_ISVTX
    if facts.st_mode & _OTHERS and not stat.S_ISLNK(facts.st_mode) and not guarded:
        return f"can be written by others than its owner (mode {facts.st_mode & 0o7777:o})"
    return None
