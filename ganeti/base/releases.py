"""Versions of this software that are installed side by side, and the one that this node uses.

Each is in a directory of its own, ``LIBRARY/X.Y``, with its Python environment ``venv`` in it. The
link ``/etc/ganeti/lib`` leads to the one in use, and programs and units go through that link. In a
source tree there is no link, and only the version that runs.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from ganeti import constants, errors
from ganeti.base import files
from ganeti.paths import Paths

_TEXT = re.compile(r"(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]?)")
_PYTHON = "venv/bin/python"


@dataclass(frozen=True, order=True)
class Version:
    """A version of which only one is installed at a time: ``3.2`` for 3.2.0 and 3.2.1."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @property
    def config(self) -> int:
        """Number of this version in ``config.data`` and on wires."""
        return self.major * 1_000_000 + self.minor * 10_000

    def is_beside(self, other: Version) -> bool:
        """Whether the two may work together: equal, or next to each other.

        The first of a new major version follows whatever was the last before it.
        """
        old, new = sorted((self, other))
        if old.major == new.major:
            return new.minor - old.minor <= 1
        return new.major - old.major == 1 and new.minor == 0


OWN = Version(constants.VERSION_MAJOR, constants.VERSION_MINOR)


def parse(text: str) -> Version:
    """A version from its text, such as ``3.2``.

    Raises:
        ParameterError: it is something else.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise errors.ParameterError(f"invalid version '{text:.40}': expected a form like {OWN}")
    return Version(int(match[1]), int(match[2]))


def read_release(text: str) -> Version:
    """The version that a release belongs to: ``3.2`` for ``3.2.1``; ParameterError as `parse`."""
    return parse(".".join(text.split(".")[:2]))


def read_config_number(number: int) -> Version:
    """The version of a ``config.data`` from the number in it."""
    return Version(number // 1_000_000, number % 1_000_000 // 10_000)


def find_active(paths: Paths) -> Version | None:
    """The version that the link of this node leads to; None where there is no link."""
    directory = _find_directory(paths)
    if directory is None:
        return None
    with contextlib.suppress(errors.ParameterError):
        return parse(directory.name)
    return None


def list_installed(paths: Paths) -> list[Version]:
    """All versions beside the one in use, and that one; only ours where there is no link."""
    active = _find_directory(paths)
    if active is None:
        return [OWN]
    found = []
    with contextlib.suppress(OSError):
        for entry in os.listdir(active.parent):
            if _TEXT.fullmatch(entry) and os.access(active.parent / entry / _PYTHON, os.X_OK):
                found.append(parse(entry))
    return sorted(found)


def directory_of(version: Version, paths: Paths) -> Path:
    """The directory in which a version is installed on this node.

    Raises:
        OpPrereqError: it is not; the text says which ones are.
    """
    active = _find_directory(paths)
    if active is None:
        raise errors.make_state_error(
            f"{paths.version_link} is missing, so this node has only version {OWN}: install"
            " ganeti from a package or with 'make install' to have several versions side by side",
        )
    if version not in (installed := list_installed(paths)):
        known = ", ".join(map(str, installed)) or "none"
        raise errors.make_unknown_error(
            f"version {version} is not installed in {active.parent}; installed: {known}",
        )
    return active.parent / str(version)


def find_python(paths: Paths) -> str:
    """The interpreter of the version in use; the one that runs this where there is no link."""
    directory = _find_directory(paths)
    python = directory / _PYTHON if directory is not None else None
    return str(python) if python is not None and os.access(python, os.X_OK) else sys.executable


def python_of(version: Version, paths: Paths) -> str:
    """The interpreter of an installed version.

    Raises:
        OpPrereqError: as of :func:`directory_of`.
    """
    return str(directory_of(version, paths) / _PYTHON)


def isolate(python: str, module: str) -> list[str]:
    """Words that run a module in an environment, whatever the directory and PYTHONPATH are."""
    return [python, "-I", "-m", module]


def use(version: Version, paths: Paths) -> None:
    """Let the link of this node lead to an installed version, in one step; durable at return.

    Raises:
        OpPrereqError: as of :func:`directory_of`.
        OSError: no permission, disk full; the link is as it was.
    """
    target = directory_of(version, paths)
    new = paths.version_link.with_name(f".{paths.version_link.name}.new")
    with contextlib.suppress(FileNotFoundError):
        new.unlink()
    new.symlink_to(target)
    new.replace(paths.version_link)
    files.fsync_dir(new.parent)


def _find_directory(paths: Paths) -> Path | None:
    """Return the target of the version link, which may be missing; None without a link."""
    try:
        return paths.version_link.parent / os.readlink(paths.version_link)
    except OSError:
        return None
