"""Finding and judging providers of external storage.

A provider is a directory with scripts on the search path; the first directory that has the name
wins. The rules for its files are those of the ExtStorage interface.
"""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ganeti import errors
from ganeti.base.text import join_names, nearest
from ganeti.rpc.objects import ExtStorageInfo

log = logging.getLogger(__name__)

CREATE = "create"
ATTACH = "attach"
DETACH = "detach"
REMOVE = "remove"
GROW = "grow"
SETINFO = "setinfo"
VERIFY = "verify"
SNAPSHOT = "snapshot"
OPEN = "open"
CLOSE = "close"
PARAMETERS = "parameters.list"

REQUIRED = (CREATE, ATTACH, DETACH, REMOVE, GROW, SETINFO, VERIFY)
OPTIONAL = (SNAPSHOT, OPEN, CLOSE)

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PARAMETER = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Provider:
    """A provider that can be used."""

    name: str
    path: Path
    #: (name, description)
    parameters: tuple[tuple[str, str], ...] = ()

    def script(self, action: str) -> Path:
        return self.path / action

    def has(self, action: str) -> bool:
        """Whether an optional script is there."""
        return self.script(action).exists()

    def check_parameters(self, names: Iterable[str]) -> None:
        """Refuse names that the provider does not list; BlockDeviceError."""
        known = [name for name, _description in self.parameters]
        for name in names:
            if name not in known:
                raise errors.BlockDeviceError(
                    f"storage provider '{self.name}' has no parameter '{name}'"
                    f"{nearest(name, known)}; it has {join_names(known) or 'none'}"
                )


def check_name(name: str) -> str:
    """A name that can be that of a provider; ParameterError otherwise."""
    if not _NAME.fullmatch(name) or len(name) > 200:
        raise errors.ParameterError(f"'{name[:80]}' cannot be the name of a storage provider")
    return name


def load(name: str, search_path: Iterable[Path]) -> Provider:
    """A provider by its name.

    Raises:
        BlockDeviceError: it is not installed here, or has defects; the text says which.
    """
    directories = list(search_path)
    for directory in directories:
        path = directory / name
        if path.is_dir():
            defects, parameters = _read(path)
            if defects:
                raise errors.BlockDeviceError(
                    f"storage provider '{name}' in {path} cannot be used: {'; '.join(defects)}"
                )
            return Provider(name, path, parameters)
    where = join_names(str(directory) for directory in directories)
    raise errors.BlockDeviceError(
        f"storage provider '{name}' is not installed on this node: it is missing in {where}"
    )


def diagnose(search_path: Iterable[Path]) -> list[ExtStorageInfo]:
    """Every provider in every directory of the search path, in its order, then by name."""
    found: list[ExtStorageInfo] = []
    for directory in search_path:
        for path in _entries(directory):
            defects, parameters = _read(path)
            found.append(
                ExtStorageInfo(
                    name=path.name,
                    path=str(path),
                    valid=not defects,
                    diagnose="; ".join(defects),
                    parameters=parameters,
                )
            )
    return found


def _entries(directory: Path) -> list[Path]:
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return []
    except OSError as err:
        log.warning("cannot list storage providers in %s: %s", directory, err.strerror)
        return []
    return [
        directory / name
        for name in names
        if not name.startswith(".") and (directory / name).is_dir()
    ]


def _read(path: Path) -> tuple[list[str], tuple[tuple[str, str], ...]]:
    """All defects of a directory, and its parameters; never raises."""
    defects: list[str] = []
    if not _NAME.fullmatch(path.name):
        defects.append(f"its name {path.name!r} has a character that no provider may have")
    for action in (*REQUIRED, *OPTIONAL):
        problem = _script_problem(path / action)
        if problem and not (action in OPTIONAL and not (path / action).exists()):
            defects.append(f"script {action} {problem}")
    parameters: tuple[tuple[str, str], ...] = ()
    try:
        parameters = _parameters((path / PARAMETERS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        defects.append(f"file {PARAMETERS} is missing")
    except OSError as err:
        defects.append(f"file {PARAMETERS} cannot be read: {err.strerror}")
    except UnicodeDecodeError as err:
        defects.append(f"file {PARAMETERS} is not UTF-8 text (byte {err.start})")
    except errors.ParseError as err:
        defects.append(f"file {PARAMETERS}: {errors.text(err)}")
    return defects, parameters


def _script_problem(path: Path) -> str | None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "is missing"
    except OSError as err:
        return f"cannot be accessed: {err.strerror}"
    if not stat.S_ISREG(mode):
        return "is not a regular file"
    return None if mode & stat.S_IXUSR else f"is not executable: chmod u+x {path}"


def _parameters(text: str) -> tuple[tuple[str, str], ...]:
    """``<name> <description>`` a line; ParseError."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, _space, description = line.strip().partition(" ")
        if not name or name.startswith("#"):
            continue
        if not _PARAMETER.fullmatch(name):
            raise errors.ParseError(f"{name[:40]!r} cannot become an environment variable")
        found[name] = description.strip()
    return tuple(found.items())
