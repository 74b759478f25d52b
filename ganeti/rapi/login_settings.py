"""The file ``login.toml``: services that authenticate users, besides the users file; pure.

``[oidc.NAME]`` is an identity provider of OpenID Connect, ``[ldap]`` a directory. Their tables
``groups`` lead from the name of a group to permissions, in the form of the users file; the group
``*`` is everybody.
"""

from __future__ import annotations

import re
import tomllib
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Annotated, TypeVar

import msgspec

from ganeti import errors
from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.net import https
from ganeti.rapi import permissions
from ganeti.rapi.identity import Identity

EVERYBODY = "*"
#: A name of a provider is in URLs and in front of the names of its users.
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
#: "token:" begins the name of a token's user.
_RESERVED = frozenset({"token", "ldap"})
#: Allowed names of users of a service.
_USER = re.compile(r"[\w.@+-]{1,128}")
#: Fields of templates.
USER_FIELD, DN_FIELD = "{user}", "{dn}"

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
Groups = dict[str, str]
S = TypeVar("S", bound="_Settings")


class _Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of both kinds of services."""

    groups: Groups
    #: file with certificates that verify the server; unset for those of the system
    ca_file: Text | None = None

    def identify(self, prefix: str, user: str, groups: Iterable[str]) -> Identity | None:
        """The identity of a user with these groups; None if no group has permissions here."""
        found: set[str] = set()
        for name in [EVERYBODY, *groups]:
            if name in self.groups:
                found |= permissions.parse(self.groups[name].split(","))
        named = {EVERYBODY, *groups} & self.groups.keys()
        return Identity(f"{prefix}:{user}", frozenset(found)) if named else None


class OidcSettings(_Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An identity provider."""

    issuer: Text
    client_id: Text
    client_secret: Text
    #: where the provider sends browsers back to: ``https://CLUSTER:5080/2/oidc/NAME/callback``
    redirect_uri: Text
    #: what the button of the log-in page says
    title: Text | None = None
    scopes: tuple[Text, ...] = ("openid", "profile")
    user_claim: Text = "preferred_username"
    groups_claim: Text = "groups"

    def __repr__(self) -> str:
        return f"OidcSettings({self.issuer})"


class LdapSettings(_Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A directory. Users are found by ``user_dn``, or by a search below ``user_base``."""

    #: ``ldaps://HOST[:PORT]``, or ``ldap://`` with STARTTLS
    url: Text
    user_dn: Text | None = None
    bind_dn: Text | None = None
    bind_password: Text | None = None
    user_base: Text | None = None
    user_filter: Text = "(uid={user})"
    group_base: Text | None = None
    group_filter: Text = "(member={dn})"
    group_attribute: Text = "cn"

    def __repr__(self) -> str:
        return f"LdapSettings({self.url})"


class Settings(msgspec.Struct, frozen=True):
    """The whole file."""

    oidc: dict[str, OidcSettings] = {}
    ldap: LdapSettings | None = None


def parse(text: str) -> Settings:
    """Parse the text of a settings file.

    Raises:
        ParseError: it cannot be used; the text begins with the line, and holds no secret.
    """
    read = _read(text)
    unknown = sorted(read.keys() - {"oidc", "ldap"})
    if unknown:
        raise errors.ParseError(f"{_find_line(text, unknown[:1])}: unknown '{unknown[0][:40]}'")
    providers = read.get("oidc", {})
    if not isinstance(providers, dict):
        raise errors.ParseError(f"{_find_line(text, ['oidc'])}: write [oidc.NAME]")
    found: dict[str, OidcSettings] = {}
    for name, raw in providers.items():
        settings = found[name] = _convert(text, ("oidc", name), raw, OidcSettings)
        _check(text, ("oidc", name), partial(_check_oidc, name, settings))
        _check_groups(text, ("oidc", name), settings.groups)
    if "ldap" not in read:
        return Settings(found)
    directory = _convert(text, ("ldap",), read["ldap"], LdapSettings)
    _check(text, ("ldap",), partial(_check_ldap, directory))
    _check_groups(text, ("ldap",), directory.groups)
    return Settings(found, directory)


def _read(text: str) -> JsonObject:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as err:
        # Of the message only the place: the rest could have a secret in it.
        place = re.search(r"at line (\d+)", str(err))
        where = f"line {place[1]}" if place else "its end"
        raise errors.ParseError(f"{where}: not TOML") from None


def _convert(text: str, keys: tuple[str, ...], raw: object, kind: type[S]) -> S:
    try:
        return typed.convert(raw, kind, strict=True)
    except msgspec.ValidationError as err:
        what, _, path = str(err).partition(" - at ")
        inner = re.findall(r"\.(\w+)", path)
        raise errors.ParseError(f"{_find_line(text, [*keys, *inner])}: {what}") from None


def _check(text: str, keys: Iterable[str], test: Callable[[], object]) -> None:
    try:
        test()
    except errors.GanetiError as err:
        raise errors.ParseError(f"{_find_line(text, list(keys))}: {errors.text(err)}") from None


def _check_groups(text: str, keys: tuple[str, ...], groups: Mapping[str, str]) -> None:
    if not groups:
        raise errors.ParseError(f"{_find_line(text, list(keys))}: without groups nobody gets in")
    for name, words in groups.items():
        wanted = (*keys, "groups", name)
        _check(text, wanted, partial(permissions.parse, words.split(",")))


def _check_oidc(name: str, settings: OidcSettings) -> None:
    if not _NAME.fullmatch(name) or name in _RESERVED:
        raise errors.ParseError(f"'{name[:40]}' cannot be the name of a provider")
    for key in ("issuer", "redirect_uri"):
        try:
            https.check_url(getattr(settings, key))
        except errors.ParameterError as err:
            raise errors.ParseError(f"{key}: {errors.text(err)}") from err
    path = f"/2/oidc/{name}/callback"
    if urllib.parse.urlsplit(settings.redirect_uri).path != path:
        raise errors.ParseError(f"redirect_uri must end in {path}")
    if "openid" not in settings.scopes:
        raise errors.ParseError("scopes must have openid among them")


def _check_ldap(settings: LdapSettings) -> None:
    try:
        parts = urllib.parse.urlsplit(settings.url)
        host, _port = parts.hostname, parts.port
    except ValueError as err:
        raise errors.ParseError(f"url: {err}") from err
    if parts.scheme not in ("ldap", "ldaps") or not host or parts.path.strip("/"):
        raise errors.ParseError("url must be ldaps://HOST[:PORT] or ldap://HOST[:PORT]")
    if (settings.user_dn is None) == (settings.user_base is None):
        raise errors.ParseError("one of user_dn and user_base is needed")
    if settings.user_dn is not None and USER_FIELD not in settings.user_dn:
        raise errors.ParseError(f"user_dn needs {USER_FIELD}")
    if USER_FIELD not in settings.user_filter:
        raise errors.ParseError(f"user_filter needs {USER_FIELD}")
    if (settings.bind_dn is None) != (settings.bind_password is None):
        raise errors.ParseError("bind_dn and bind_password belong together")
    if settings.group_base is None and set(settings.groups) != {EVERYBODY}:
        raise errors.ParseError(f"without group_base the only group is '{EVERYBODY}'")


def _find_line(text: str, keys: list[str]) -> str:
    """Find the line of a key, or of the table that it belongs to; for people."""
    table: list[str] = []
    depth, best = 0, 1
    for number, line in enumerate(text.splitlines(), 1):
        if head := re.match(r"\s*\[([^\]]+)\]", line):
            table = path = [part.strip(" \t\"'") for part in head[1].split(".")]
        elif own := re.match(r"\s*([\"']?)(.+?)\1\s*=", line):
            path = [*table, own[2]]
        else:
            continue
        if len(path) > depth and keys[: len(path)] == path:
            depth, best = len(path), number
    return f"line {best}"


def check_user(name: object) -> str | None:
    """A name of a user as a service says it; None for what cannot be one."""
    return name if isinstance(name, str) and _USER.fullmatch(name) else None
