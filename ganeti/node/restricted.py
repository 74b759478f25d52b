"""Restricted commands: programs in a directory of this node, which the master has run by name.

They are off. A node runs one only when the administrator of the node has put it into the directory
``restricted-commands`` and its name into the file ``restricted-commands.allow``, and nobody but
root could change either. A line of that file is ``NAME`` or ``NAME USER``; without a user the
program runs as ``nobody``. It gets no arguments, no input and no environment of ours.
"""

from __future__ import annotations

import logging
import os
import pwd
import re
from pathlib import Path

from ganeti import errors
from ganeti.base import files, process, programs
from ganeti.paths import Paths

log = logging.getLogger(__name__)

#: Seconds a command gets; less than the master waits for the answer.
TIME_LIMIT = 1800.0
#: Largest output that is returned, in bytes.
MAX_OUTPUT = 65_536
USER = "nobody"

_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")


def run(paths: Paths, name: str) -> str:
    """Run a command and return both of its outputs; blocks up to half an hour.

    Raises:
        ParameterError: this cannot be the name of a command.
        CommandError: this node does not allow it, it is not safe, it failed or took too long.
        LockError: another one runs on this node.
    """
    if not _NAME.fullmatch(name):
        raise errors.ParameterError(
            f"{name!r:.80} cannot be the name of a restricted command: letters, digits, - and _"
        )
    user = _user(name, _allowed(paths.restricted_allow, name))
    program = str(paths.restricted_commands / name)
    if (why := programs.flaw(program)) is not None:
        raise errors.CommandError(f"restricted command {why}")
    files.ensure_dir(paths.locks)
    try:
        with files.FileLock(paths.restricted_lock).hold(blocking=False):
            result = process.run(
                [program], timeout=TIME_LIMIT, cwd=Path("/"), most=MAX_OUTPUT, user=user
            )
    except errors.LockError:
        raise errors.LockError("another restricted command runs on this node; try again") from None
    log.info("restricted command %s, as %s: exit code %d", name, user.pw_name, result.code)
    if not result.ok:
        raise errors.CommandError(result.explain())
    return result.stdout


def _allowed(file: Path, name: str) -> str:
    """The user that a command runs as; CommandError when it is not allowed."""
    if not os.path.lexists(file):
        raise errors.CommandError(
            f"restricted commands are off on this node: {file} is missing, which names the allowed"
            " ones"
        )
    if (why := programs.exposure(str(file))) is not None:
        raise errors.CommandError(f"restricted commands are off on this node: {why}")
    try:
        text = files.read_text(file)
    except (OSError, UnicodeDecodeError) as err:
        raise errors.CommandError(f"cannot read {file}: {err}") from err
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if len(words) > 2:
            raise errors.CommandError(f"{file} line {number}: write NAME or NAME USER")
        if words[:1] == [name]:
            return words[1] if len(words) == 2 else ""
    raise errors.CommandError(f"restricted command {name} is not allowed: {file} does not name it")


def _user(name: str, wanted: str) -> pwd.struct_passwd:
    """The user, by name; CommandError when this daemon cannot become it."""
    own_uid = os.geteuid()
    if not wanted and own_uid != 0:
        return pwd.getpwuid(own_uid)
    try:
        user = pwd.getpwnam(wanted or USER)
    except KeyError:
        raise errors.CommandError(
            f"restricted command {name} is to run as user {wanted or USER}, whom this node does"
            " not have"
        ) from None
    if own_uid not in (0, user.pw_uid):
        raise errors.CommandError(
            f"restricted command {name} is to run as user {user.pw_name}, which needs a node daemon"
            " that runs as root"
        )
    return user
