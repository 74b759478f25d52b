"""Messages to a program of the administrator, which reads them as JSON from its input.

Only what lies in one directory of the master is run, as a user without rights: whoever may add a
notification must not thereby run programs as root.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Sequence
from pathlib import Path

from ganeti import errors
from ganeti.base import process, programs
from ganeti.paths import Paths

#: Seconds a program gets.
TIMEOUT = 30.0
#: User of the programs when the master daemon is root.
USER = "nobody"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")


def check(command: Sequence[str]) -> None:
    """ParameterError for what cannot be a command."""
    if not _NAME.fullmatch(command[0]):
        raise errors.ParameterError(
            f"'{command[0][:80]}' is not the name of a program for notifications:"
            " letters, digits, - and _"
        )
    if len(command) > 20 or any(len(word) > 1000 or "\0" in word for word in command):
        raise errors.ParameterError("a command has at most 19 arguments of 1000 characters")


def run(paths: Paths, command: Sequence[str], body: bytes) -> None:
    """Run a program with a body as its input; blocks up to half a minute.

    Raises:
        CommandError: it is missing, not safe, failed or took too long.
    """
    program = str(paths.notify_commands / command[0])
    if (reason := programs.flaw(program)) is not None:
        raise errors.CommandError(f"{reason} (on this node)")
    result = process.run(
        [program, *command[1:]],
        timeout=TIMEOUT,
        cwd=Path("/"),
        input=body,
        user=pwd.getpwnam(USER) if os.geteuid() == 0 else None,
    )
    if not result.ok:
        raise errors.CommandError(result.explain())
