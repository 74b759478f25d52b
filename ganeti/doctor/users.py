"""The users and groups that daemons run as instead of root."""

from __future__ import annotations

import grp
import pwd
from collections.abc import Iterator, Mapping

from ganeti import constants

#: User, and what runs as it. Each has a group of its own name.
USERS: Mapping[str, str] = {constants.RAPI_USER: "remote API"}
_HOME = "/var/lib/ganeti"


def find_missing() -> list[list[str]]:
    """Commands that create what this server does not have."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    groups = {entry.gr_name: set(entry.gr_mem) for entry in grp.getgrall()}
    return list(commands(names, groups))


def commands(users: set[str], groups: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """The commands that create missing users and groups. Pure."""
    for group in (constants.DAEMONS_GROUP, *USERS):
        if group not in groups:
            yield ["groupadd", "--system", group]
    for user, what in USERS.items():
        if user not in users:
            words = ["--system", "--gid", user, "--no-create-home", "--home-dir", _HOME]
            shell = ["--shell", "/usr/sbin/nologin", "--comment", f"Ganeti {what}"]
            yield ["useradd", *words, *shell, user]
        if user not in groups.get(constants.DAEMONS_GROUP, set()):
            yield ["usermod", "--append", "--groups", constants.DAEMONS_GROUP, user]
