"""The users file: reading it, and who a password belongs to.

A line is ``<user> <password> [permission,...]``; lines that begin with ``#`` are comments. The line
``{anonymous} refused`` lets nobody in who does not say who it is.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from ganeti import errors
from ganeti.base import files
from ganeti.rapi import passwords, permissions
from ganeti.rapi.identity import Identity

#: Stands for those who do not say who they are; no user can be called like that.
ANONYMOUS = "{anonymous}"
_REFUSED, _ALLOWED = "refused", "allowed"
_NAME = re.compile(r"[^\s:#{}][^\s:]*")


@dataclass(frozen=True)
class User:
    """One line of the file."""

    name: str
    stored: str = field(repr=False)
    permissions: frozenset[str]

    @property
    def identity(self) -> Identity:
        return Identity(self.name, self.permissions)

    @property
    def fingerprint(self) -> str:
        """Changes with everything that the line says."""
        parts = (self.name, self.stored, *sorted(self.permissions))
        return hashlib.sha256(" ".join(parts).encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True)
class Problem:
    """Problem of a line; ``broken`` when the line was meant to be a user."""

    line: int
    text: str
    broken: bool

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"


def parse(text: str) -> tuple[dict[str, User], list[Problem]]:
    """Users by name, and what could not be read; of two lines for a user the last one counts."""
    found: dict[str, User] = {}
    problems: list[Problem] = []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split(None, 2)
        if not words or line.startswith("#"):
            continue
        if words[0] == ANONYMOUS:
            if words[1:] not in ([_REFUSED], [_ALLOWED]):
                text = f"{ANONYMOUS} is followed by {_REFUSED} or {_ALLOWED}, by nothing else"
                problems.append(Problem(number, text, True))
            continue
        if len(words) < 2:
            problems.append(Problem(number, "a user needs a password; the line is left out", False))
            continue
        if words[0] in found:
            problems.append(Problem(number, f"user '{words[0]}' was there before", False))
        try:
            passwords.check_form(words[1])
            held = permissions.parse(words[2].split(",") if len(words) > 2 else ())
        except errors.ParseError as err:
            problems.append(Problem(number, f"user '{words[0]}': {errors.text(err)}", True))
        else:
            found[words[0]] = User(words[0], words[1], held)
    return found, problems


def lets_anonymous_in(text: str) -> bool:
    """Whether a file lets those in who do not say who they are; the last line counts."""
    lines = [words for words in map(str.split, text.split("\n")) if words[:1] == [ANONYMOUS]]
    return not lines or lines[-1][1:] == [_ALLOWED]


class Users:
    """The users of one state of the file. Thread-safe.

    A password that was right once is remembered as a keyed digest, so that a slow hash is
    computed once and not for each request.
    """

    def __init__(self, users: Iterable[User] = ()) -> None:
        self._users = {user.name: user for user in users}
        self._cost = max((passwords.cost_of(u.stored) for u in self._users.values()), default=0)
        self._key = os.urandom(32)
        self._proved: dict[str, bytes] = {}

    def __len__(self) -> int:
        return len(self._users)

    def find(self, name: str) -> User | None:
        """The line of a user."""
        return self._users.get(name)

    def recall(self, name: str, password: bytes) -> Identity | None:
        """The user if this password was right before; takes no time."""
        known = self._proved.get(name)
        if known is None or not hmac.compare_digest(known, self._digest(password)):
            return None
        return self._users[name].identity

    def check(self, name: str, password: bytes) -> Identity | None:
        """The user if the password is right; a failure takes as long for all names."""
        user = self._users.get(name)
        if user is not None and passwords.matches(user.stored, name, password):
            self._proved[name] = self._digest(password)
            return user.identity
        if user is None or passwords.cost_of(user.stored) < self._cost:
            passwords.waste(self._cost, password)
        return None

    def _digest(self, password: bytes) -> bytes:
        return hmac.digest(self._key, password, hashlib.sha256)


def check_name(name: str) -> None:
    """Whether a name can stand in the file.

    Raises:
        ParseError: it cannot.
    """
    if not _NAME.fullmatch(name):
        raise errors.ParseError(
            f"'{name}' cannot be a user name: no blanks, no colon, no '#' or brace at the start"
        )


def edit(path: Path, name: str, line: str | None) -> bool:
    """Replace the lines of a user by one, or take them out (None); keeps all other lines.

    Returns whether the user was there. The file keeps owner and mode; a new one gets 0640 and the
    owner of its directory.
    """
    with lock_file(path):
        old = files.read_text(path).splitlines() if path.exists() else []
        kept = [text for text in old if text.startswith("#") or text.split(None, 1)[:1] != [name]]
        new = [*kept, line] if line else kept
        write_private(path, "".join(f"{text}\n" for text in new), 0o640)
    return len(kept) < len(old)


def lock_file(path: Path) -> AbstractContextManager[None]:
    """Keep others from changing a file meanwhile; makes its directory."""
    files.ensure_dir(path.parent)
    return files.FileLock(path.with_name(f".{path.name}.lock")).hold()


def write_private(path: Path, text: str, mode: int) -> None:
    """Replace a file that the daemon's user reads; a new one belongs to its directory's owner."""
    model = path if path.exists() else path.parent
    facts = model.stat()
    if model is path:
        mode = facts.st_mode & 0o640
    files.write_atomic(path, text, mode=mode, uid=facts.st_uid, gid=facts.st_gid)
