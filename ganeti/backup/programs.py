"""Common parts of restic and borg: items with a name and a note, and the meaning of errors."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from typing import NamedTuple, Protocol

#: Seconds that a program waits for others that work in the repository.
LOCK_WAIT = 600


class Item(NamedTuple):
    """One thing that is kept: a snapshot of restic, or an archive of borg, with one file in it."""

    #: by which the program finds it
    handle: str
    name: str
    note: str = ""


class Program(Protocol):
    """Argument lists of a program, and what it writes. Pure.

    Address and password are in its environment.
    """

    @property
    def name(self) -> str: ...

    @property
    def package(self) -> str:
        """The package of Debian that has it."""

    @property
    def stop(self) -> signal.Signals:
        """The signal after which it ends, unlocks the repository and keeps nothing."""

    def build_list(self, *, wait: bool) -> list[str]:
        """Lists all items; with ``wait`` when nobody changes them."""

    def parse_list(self, text: str) -> list[Item]:
        """The items; ValueError for anything else."""

    def build_put(self, name: str, note: str) -> list[str]:
        """Keeps its standard input."""

    def build_get(self, item: Item) -> list[str]:
        """Writes an item to its standard output."""

    def build_remove(self, items: Sequence[Item]) -> list[list[str]]:
        """Remove items, and then what they alone took."""

    def build_unlock(self) -> list[str] | None:
        """Removes locks of processes that are dead; None when it does so by itself."""


_LOCKED = r"already locked|acquire the lock|LockTimeout"
#: Patterns of error output, with advice. The first one that is found counts.
_ADVICE = (
    (_LOCKED, "another program has locked it; try again later. If none is running: {unlock}"),
    (
        r"wrong password|passphrase.*incorrect|password failed|empty password|PassphraseWrong"
        r"|PasscommandFailure|can not be acquired|Fatal: .*password",
        "correct the password that {file} names",
    ),
    (r"No space left|disk quota|ENOSPC|Insufficient ?Free ?Space",
     "it is full: remove backups with gnt-backup prune, or make it larger"),
    (
        r"no such file or directory.*\bconfig|unable to open config|repository does not exist"
        r"|does not exist\.|not a valid repository|specified key does not exist.*config",
        "make it with '{init}', or correct the address in {file}",
    ),
    (r"previously unknown unencrypted|relocated|access aborted",
     "run '{list}' once on this node and answer its question, or set what borg names in {file}"),
    (
        r"connection refused|no route|could not resolve|no such host|timed? ?out|broken pipe"
        r"|connection (lost|closed|reset)|host key|permission denied \(|unreachable|handshake",
        "check whether it can be reached from this node: {list}",
    ),
    (
        r"invalid data|ciphertext|integrity|checksum|hash|not found in repository|damaged|corrupt"
        r"|missing|id .* not found|does not match",
        "it is damaged: {check}",
    ),
)  # fmt: skip
_COMMANDS = {
    "restic": {
        "init": "restic init",
        "list": "restic snapshots",
        "check": "restic check --read-data",
        "unlock": "restic unlock",
    },
    "borg": {
        "init": "borg init -e repokey",
        "list": "borg list",
        "check": "borg check --verify-data",
        "unlock": "borg break-lock",
    },
}


def is_locked(output: str) -> bool:
    """Whether a program failed because others work in the repository."""
    return bool(re.search(_LOCKED, output))


def explain(program: str, output: str, file: str) -> str:
    """The text for the user when a program failed: its last lines, and what to do."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    commands = _COMMANDS[program]
    for pattern, advice in _ADVICE:
        for line in lines:
            if re.search(pattern, line, re.IGNORECASE):
                return f"{line[:300].rstrip('.')}; {advice.format(**commands, file=file)}"
    telling = [line for line in lines if "atal" in line or "rror" in line] or lines
    return telling[-1][:300] if telling else "it ended without a message"
