"""The facts of a log-in by which the user of a session is identified again.

They hold no password, token or key, so they may be written to a file.
"""

from __future__ import annotations

import msgspec


class Password(msgspec.Struct, frozen=True, tag="password"):
    """A line of the file ``users``, which must stay as it was."""

    user: str
    #: digest of the line
    line: str


class KnownToken(msgspec.Struct, frozen=True, tag="token"):
    """A token, which must stay as it was."""

    id: str
    #: digest of what is kept of it
    entry: str


class Provided(msgspec.Struct, frozen=True, tag="oidc"):
    """A user of an identity provider, with the groups of the log-in."""

    provider: str
    issuer: str
    client_id: str
    user: str
    groups: tuple[str, ...]


class Listed(msgspec.Struct, frozen=True, tag="ldap"):
    """A user of a directory, with the groups of the log-in."""

    url: str
    user_dn: str | None
    user_base: str | None
    user: str
    groups: tuple[str, ...]


Backing = Password | KnownToken | Provided | Listed
