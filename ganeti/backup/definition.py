"""Repositories of restic and borg that a node knows: a file with the environment of the program.

The name of the file is that of the repository. Only root may read it, because it may hold secrets::

    RESTIC_REPOSITORY=sftp:backup@store.example.com:/srv/restic
    RESTIC_PASSWORD_FILE=/etc/ganeti/backup-password
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ganeti import errors
from ganeti.backup.borg import Borg
from ganeti.backup.programs import Program
from ganeti.backup.restic import Restic
from ganeti.base import files, process

_VARIABLE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)")
_PROGRAMS: Mapping[str, type[Program]] = {"RESTIC_REPOSITORY": Restic, "BORG_REPO": Borg}
#: Variables that name a file with a secret.
_SECRET_FILES = ("RESTIC_PASSWORD_FILE", "BORG_PASSPHRASE_FILE")


@dataclass(frozen=True)
class Definition:
    """One repository: its name, the program that keeps it, and the environment of that."""

    name: str
    file: str
    program: Program
    environment: Mapping[str, str] = field(repr=False)


def load(path: Path) -> Definition:
    """Read the file of a repository.

    Raises:
        ParameterError: there is none, others may read it, or it has a wrong line.
    """
    _check_mode(path)
    try:
        variables = _parse(files.read_text(path), path)
    except FileNotFoundError:
        raise errors.ParameterError(
            f"this node has no repository '{path.name}': describe it in {path}"
        ) from None
    except (OSError, UnicodeDecodeError) as err:
        raise errors.ParameterError(f"cannot read {path}: {err}") from err
    found = [program for name, program in _PROGRAMS.items() if variables.get(name)]
    if len(found) != 1:
        raise errors.ParameterError(f"{path} must have one of {', '.join(_PROGRAMS)}")
    for name in _SECRET_FILES:
        if name in variables:
            _check_mode(Path(variables[name]))
    environment = {
        "PATH": process.search_path(),
        "LC_ALL": "C.UTF-8",
        "HOME": os.path.expanduser("~"),
        **variables,
    }
    return Definition(path.name, str(path), found[0](), environment)


def _check_mode(path: Path) -> None:
    try:
        found = path.stat()
    except OSError:
        return  # who opens it says why it cannot
    if found.st_mode & 0o077 or found.st_uid not in (0, os.geteuid()):
        raise errors.ParameterError(
            f"{path} can be read by others, and names or holds a password: chown root {path};"
            f" chmod 600 {path}"
        )


def _parse(text: str, path: Path) -> dict[str, str]:
    """Lines ``NAME=VALUE`` as a shell would read them, but nothing in a value is replaced."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _VARIABLE.fullmatch(line.strip())
        try:
            words = shlex.split(match[2]) if match is not None else []
        except ValueError:
            match = None
        if match is None or len(words) > 1:
            raise errors.ParameterError(f"{path} line {number} is not NAME=VALUE")
        found[match[1]] = words[0] if words else ""
    return found
