"""users-setup: create the users and groups that daemons run as instead of root."""

from __future__ import annotations

import argparse
import grp
import pwd
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence

from ganeti import constants
from ganeti.base import process
from ganeti.tools import entry

PROGRAM = "users-setup"
#: The group that may reach the sockets and logs of the daemons.
DAEMONS = "gnt-daemons"
#: User, and what runs as it. Each has a group of its own name.
USERS: Mapping[str, str] = {"gnt-rapi": "remote API"}
_HOME = "/var/lib/ganeti"
_PATIENCE = 60.0


def main(argv: Sequence[str] | None = None) -> int:
    """0 when all users and groups exist; 1 when some are missing, or one cannot be created."""
    options = parser().parse_args(argv)
    return entry.run(PROGRAM, lambda: _set_up(yes=options.yes_do_it))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Create the users and groups that daemons can run as instead of root. The"
        " packages do the same. Without --yes-do-it it only prints the commands.",
        epilog="Exit codes: 0 all of them exist; 1 some are missing, or one could not be created;"
        " 2 wrong options.",
    )
    made.add_argument("--yes-do-it", action="store_true", help="create what is missing")
    return made


def _set_up(*, yes: bool) -> int:
    users = {entry_.pw_name for entry_ in pwd.getpwall()}
    groups = {entry_.gr_name: set(entry_.gr_mem) for entry_ in grp.getgrall()}
    missing = list(commands(users, groups))
    for command in missing:
        print(shlex.join(command), flush=True)
        if yes:
            process.run_checked(command, timeout=_PATIENCE)
    if missing and not yes:
        print("Nothing was created; --yes-do-it runs these commands", file=sys.stderr)
        return constants.EXIT_FAILURE
    return constants.EXIT_SUCCESS


def commands(users: set[str], groups: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """What creates the users and groups that are missing. Pure."""
    for group in (DAEMONS, *USERS):
        if group not in groups:
            yield ["groupadd", "--system", group]
    for user, what in USERS.items():
        if user not in users:
            words = ["--system", "--gid", user, "--no-create-home", "--home-dir", _HOME]
            shell = ["--shell", "/usr/sbin/nologin", "--comment", f"Ganeti {what}"]
            yield ["useradd", *words, *shell, user]
        if user not in groups.get(DAEMONS, set()):
            yield ["usermod", "--append", "--groups", DAEMONS, user]


if __name__ == "__main__":
    sys.exit(main())
