"""gnt-rapi: users and tokens of the remote API.

Works on files of the master node, then lets the master copy them to the master candidates.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from ganeti import errors, paths
from ganeti.base import files, units
from ganeti.base.text import join_names
from ganeti.cli import jobs, notices, records
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many, take_one
from ganeti.cli.fields import override
from ganeti.cli.programs import RAPI

#: Options of users and of tokens, and what differs from the rule for them.
_OF_USERS = {"TokenSettings": ("permissions",)}
_OF_TOKENS = {"TokenSettings": ("permissions", "expires", "group", "tag", "quota")}
_PERMISSIONS = {"permissions": override("-p", "--permissions", metavar="<permission>,...")}
_TOKEN = {
    **_PERMISSIONS,
    "expires": override(kind="string", metavar="<time>"),
    "quota": override(kind="keyval", metavar="<dimension>=<limit>,..."),
}
_TABLE = (*o.TABLE_OPTIONS, o.FORMAT)


@RAPI.command("user add", take_one("name"), also=_OF_USERS, names=_PERMISSIONS)
def user_add(call: Call) -> None:
    """Add a user.

    The password is requested on the terminal, or read from the first line of standard input; it
    is kept as a bcrypt hash. The remote API accepts the user at once. Without permissions a user
    can read what is open to all users.

      gnt-rapi user add --permissions @operator,-instance.console anna
    """
    _check_master()
    _set_user(call, call.args[0], new=True)
    _distribute(call)


@RAPI.command("user passwd", take_one("name"), also=_OF_USERS, names=_PERMISSIONS)
def user_passwd(call: Call) -> None:
    """Change the password of a user, and the permissions if they are given.

    The password is requested on the terminal, or read from the first line of standard input.
    """
    _check_master()
    _set_user(call, call.args[0], new=False)
    _distribute(call)


@RAPI.command("user remove", take_one("name"))
def user_remove(call: Call) -> None:
    """Remove a user; the next request of this user is refused."""
    _check_master()
    _remove_user(call.args[0])
    _distribute(call)


@RAPI.command("user list", options=_TABLE)
def user_list(call: Call) -> None:
    """List users with their permissions and the form in which their password is kept."""
    _list_users(call)


@RAPI.command(
    "token add",
    take_one("name"),
    also=_OF_TOKENS,
    names=_TOKEN,
)
def token_add(call: Call) -> None:
    """Create a token, a secret for a program in place of a password, and print it.

    It cannot be shown again: only its checksum is stored. It is sent as
    'Authorization: Bearer <token>', or as the password of any user. With --group or --tag it
    gives access to no other objects.

      gnt-rapi token add --permissions read --expires 90d monitoring
      gnt-rapi token add --permissions write --tag shop --quota instances=5,memory=16g shop
    """
    _check_master()
    _add_token(call, call.args[0])
    _distribute(call)


@RAPI.command("token revoke", take_many("token", 1), usage="<name or id>...")
def token_revoke(call: Call) -> None:
    """Revoke tokens; the next request with one of them is refused."""
    _check_master()
    from ganeti.rapi import tokens

    unknown = tokens.revoke(paths.current().rapi_tokens, call.args)
    _distribute(call)
    if unknown:
        raise errors.make_unknown_error(f"There is no token {join_names(unknown)}")


@RAPI.command("token list", options=_TABLE)
def token_list(call: Call) -> None:
    """List tokens with their permissions, scope and expiry."""
    _list_tokens(call)


def _check_master() -> None:
    from ganeti.luxi.absence import explain_absence, master_name

    where = paths.current()
    if master_name(where) != paths.hostname():
        raise explain_absence(where.luxi_socket, where)


def _distribute(call: Call) -> None:
    """Have the files on all master candidates; without it they come with the next change."""
    try:
        jobs.run_op(call, "OP_CLUSTER_REDIST_CONF")
    except errors.GanetiError as err:
        notices.warn(
            "the change is made on this node but not sent to the master candidates:"
            f" {errors.text(err)} (gnt-cluster redist-conf tries again)"
        )


# users


def _set_user(call: Call, name: str, *, new: bool) -> None:
    from ganeti.rapi import passwords, users

    path = paths.current().rapi_users
    users.check_name(name)
    words = _words_of(path, name)
    if new == (words is not None):
        text = "exists already; 'passwd' changes it" if new else "does not exist"
        raise errors.OpPrereqError(
            f"User '{name}' {text}", errors.ErrorCode.EXISTS if new else errors.ErrorCode.NOENT
        )
    granted = call.opts.permissions
    if granted is not None:
        _check_permissions(granted)
    elif words is not None:
        granted = words
    line = f"{name} {passwords.store(_password(name))} {','.join(granted or ())}"
    users.edit(path, name, line.rstrip())


def _words_of(path: Any, name: str) -> list[str] | None:
    """The permissions of a user as they are written; None when there is no such user."""
    found = None
    for text in files.read_text(path).splitlines() if path.exists() else ():
        words = text.split(None, 2)
        if words[:1] == [name] and len(words) > 1:
            found = words[2].split(",") if len(words) > 2 else []
    return found


def _check_permissions(words: Iterable[str]) -> None:
    from ganeti.rapi import permissions
    from ganeti.rapi.identity import permission_of
    from ganeti.rapi.routes import ROUTES

    known = {permission_of(route.method, route.path) for route in ROUTES}
    unknown = permissions.find_unknown(permissions.parse(words), known)
    if unknown:
        raise errors.make_invalid_error(
            f"Unknown permission {join_names(unknown)}; choose from"
            f" {join_names(sorted(known), 200)}",
        )


def _password(name: str) -> str:
    """Ask on the terminal, twice, or read a line of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    from getpass import getpass

    first = getpass(f"Password of {name}: ")
    if getpass("The same again: ") != first:
        raise errors.make_invalid_error("The passwords differ")
    return first


def _remove_user(name: str) -> None:
    from ganeti.rapi import users

    if not users.edit(paths.current().rapi_users, name, None):
        raise errors.make_unknown_error(f"There is no user '{name}'")


def _list_users(call: Call) -> None:
    from ganeti.rapi import users

    path = paths.current().rapi_users
    found, problems = users.parse(files.read_text(path) if path.exists() else "")
    rows = [
        {
            "name": item.name,
            "permissions": _words_of(path, item.name) or [],
            "password": _kind(item.stored),
        }
        for item in sorted(found.values(), key=lambda item: item.name)
    ]
    for problem in problems:
        notices.warn(f"{path}, {problem}")
    records.show(
        call, ("name", "permissions", "password"), ("Name", "Permissions", "Password"), rows
    )


def _kind(stored: str) -> str:
    scheme, closed, _ = stored.partition("}")
    return scheme[1:].lower() if closed and stored.startswith("{") else "cleartext"


# tokens


def _add_token(call: Call, name: str) -> None:
    from ganeti.rapi import tokens

    opts, now = call.opts, call.clock.now()
    _check_permissions(opts.permissions or ())
    if opts.group is not None:
        call.client.query("group", ["name"], ["==", "name", opts.group])  # fails for no group
    print(
        tokens.add(
            paths.current().rapi_tokens,
            name,
            opts.permissions or (),
            now=now,
            expires=None if opts.expires is None else now + units.parse_timespec(opts.expires),
            group=opts.group,
            tag=opts.tag,
            quota=_quota(opts.quota),
        )
    )


def _quota(given: dict[str, str] | None) -> Any:
    if not given:
        return None
    import msgspec

    from ganeti.base import typed
    from ganeti.model.limits import Quota

    sizes = {
        key: units.parse_size(text) if key in ("memory", "disk") else text
        for key, text in given.items()
    }
    try:
        return typed.convert(sizes, Quota, strict=False)
    except msgspec.ValidationError as err:
        raise errors.make_invalid_error(f"--quota: {err}") from err


def _list_tokens(call: Call) -> None:
    import msgspec

    from ganeti.rapi import tokens

    now = call.clock.now()
    found = [
        {
            "id": item.id,
            "name": item.name,
            "permissions": item.permissions,
            "group": item.group,
            "tag": item.tag,
            "quota": None if item.quota is None else msgspec.to_builtins(item.quota),
            "created": item.created,
            "expires": item.expires,
            "expired": item.expired(now),
        }
        for item in sorted(tokens.read(paths.current().rapi_tokens), key=lambda item: item.name)
    ]
    titles = ("Id", "Name", "Permissions", "Group", "Tag", "Quota", "Created", "Expires", "Expired")
    records.show(call, tuple(title.lower() for title in titles), titles, found)
