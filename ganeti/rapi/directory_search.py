"""Requests to an LDAP directory about a user; the only module that imports ldap3.

A user is found by a template of its name, or by a search; its password is proved by a bind as this
user. Source: RFC 4511, RFC 4513 (section 5.1.2: a bind without a password proves nothing),
RFC 4514 and 4515 (what must be escaped).
"""

from __future__ import annotations

import logging
import urllib.parse
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ganeti import errors
from ganeti.base import files
from ganeti.base.json_types import JsonObject
from ganeti.net import https
from ganeti.rapi.backing import Listed
from ganeti.rapi.login_settings import DN_FIELD, USER_FIELD, LdapSettings

with warnings.catch_warnings():
    # It uses old names of the library that encodes its messages.
    warnings.simplefilter("ignore", DeprecationWarning)
    import ldap3
    from ldap3.core.exceptions import LDAPException
    from ldap3.utils.conv import escape_filter_chars
    from ldap3.utils.dn import escape_rdn

_LOG = logging.getLogger(__name__)

#: Seconds for a connection and for each answer.
TIMEOUT = 3
#: Groups of one user that are read.
_MOST_GROUPS = 1000
_SUCCESS = 0
#: Results that say that the server does not work, and nothing of the user: operationsError,
#: protocolError, busy, unavailable, other.
_BROKEN = frozenset((1, 2, 51, 52, 80))
_PORTS = {"ldap": 389, "ldaps": 636}


def prove(settings: LdapSettings, name: str, password: bytes) -> Listed | None:
    """The user with its groups; None when the name or the password is wrong.

    Blocks for some times :data:`TIMEOUT` at most. The password must not be empty.

    Raises:
        RemoteError: the directory does not answer as it should.
    """
    try:
        return _Conversation(settings).prove(name, password)
    except LDAPException as err:
        raise errors.RemoteError(str(err) or type(err).__name__) from err


class _Tls(ldap3.Tls):  # type: ignore[misc]
    """TLS as for all servers outside of the cluster: certificate and name are verified."""

    def __init__(self, authority: str | None, host: str) -> None:
        super().__init__()
        self._context = https.make_context(authority)
        self._host = host

    def wrap_socket(self, connection: Any, do_handshake: bool = False) -> None:
        """Called by ldap3 for ldaps, and after STARTTLS."""
        connection.socket = self._context.wrap_socket(connection.socket, server_hostname=self._host)


class _Conversation:
    """Questions to a directory about one user."""

    def __init__(self, settings: LdapSettings) -> None:
        self._settings = settings
        parts = urllib.parse.urlsplit(settings.url)
        self._encrypted = parts.scheme == "ldaps"
        host = parts.hostname or ""
        path = settings.ca_file
        authority = None if path is None else files.read_text(Path(path))
        self._server = ldap3.Server(
            host,
            parts.port or _PORTS[parts.scheme],
            use_ssl=self._encrypted,
            tls=_Tls(authority, host),
            get_info=ldap3.NONE,
            connect_timeout=TIMEOUT,
        )

    def prove(self, name: str, password: bytes) -> Listed | None:
        """The user with its groups; None when the name or the password is wrong."""
        settings = self._settings
        dn = self._find_dn(name)
        if dn is None:
            return None
        with self._bind(dn, password.decode("utf-8", "replace")) as link:
            if link is None:
                return None
            if settings.bind_dn is None:
                return self._list(link, name, dn)
        with self._bind_ourselves() as link:
            return self._list(link, name, dn)

    def _list(self, link: ldap3.Connection, name: str, dn: str) -> Listed:
        found, groups = self._settings, self._find_groups(link, name, dn)
        return Listed(found.url, found.user_dn, found.user_base, name, groups)

    def _find_dn(self, name: str) -> str | None:
        settings = self._settings
        if settings.user_dn is not None:
            return settings.user_dn.replace(USER_FIELD, escape_rdn(name))
        with self._bind_ourselves() as link:
            wanted = settings.user_filter.replace(USER_FIELD, escape_filter_chars(name))
            found = _search(link, settings.user_base or "", wanted, [], 2)
        # Of two nobody knows whose password it is.
        return found[0]["dn"] if len(found) == 1 else None

    def _find_groups(self, link: object, name: str, dn: str) -> tuple[str, ...]:
        settings = self._settings
        if settings.group_base is None:
            return ()
        wanted = settings.group_filter.replace(DN_FIELD, escape_filter_chars(dn))
        wanted = wanted.replace(USER_FIELD, escape_filter_chars(name))
        attribute = settings.group_attribute
        found = _search(link, settings.group_base, wanted, [attribute], _MOST_GROUPS)
        values = [value for item in found for value in item["attributes"].get(attribute, ())]
        return tuple(value for value in values if isinstance(value, str))

    @contextmanager
    def _bind_ourselves(self) -> Iterator[object]:
        """A connection of the daemon, or of nobody where the settings name no user for it."""
        settings = self._settings
        with self._bind(settings.bind_dn, settings.bind_password) as link:
            if link is None:
                raise errors.RemoteError(f"it refuses the password of {settings.bind_dn}")
            yield link

    @contextmanager
    def _bind(self, dn: str | None, password: str | None) -> Iterator[object]:
        """A connection as a user; None when the directory refuses it."""
        link = ldap3.Connection(
            self._server,
            user=dn,
            password=password,
            authentication=ldap3.ANONYMOUS if dn is None else ldap3.SIMPLE,
            receive_timeout=TIMEOUT,
            auto_referrals=False,
            read_only=True,
        )
        try:
            link.open()
            if not self._encrypted:
                link.start_tls()
            link.bind()
            code = link.result["result"]
            if code in _BROKEN:
                raise errors.RemoteError(f"it answers a bind with {link.result['description']}")
            if code != _SUCCESS:
                _LOG.info("directory refuses a bind as %r: %s", dn, link.result["description"])
            yield link if code == _SUCCESS else None
        finally:
            link.unbind()


def _search(
    link: Any, base: str, wanted: str, attributes: list[str], most: int
) -> list[JsonObject]:
    link.search(base, wanted, attributes=attributes, size_limit=most, time_limit=TIMEOUT)
    if link.result["result"] not in (_SUCCESS, 4, 32):  # too many, or no such base
        raise errors.RemoteError(f"it answers a search with {link.result['description']}")
    return [item for item in link.response or [] if item.get("type") == "searchResEntry"]
