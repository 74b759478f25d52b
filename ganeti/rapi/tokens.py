"""Tokens: long random secrets for programs, with an end, permissions and a scope.

Only a digest is kept (a token has 256 random bits, so a plain SHA-256 cannot be searched). A
token is ``gnt_<id>_<secret>``; the id is not a secret and names it in lists and logs.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from ganeti import errors
from ganeti.base import typed
from ganeti.base.typed import doc
from ganeti.model.limits import Limits, Quota
from ganeti.rapi import permissions, users
from ganeti.rapi.identity import Identity

_TOKEN = re.compile(r"gnt_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")
_MODE = 0o600


class TokenSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings of a token; ``gnt-rapi`` has its options from here."""

    permissions: Annotated[
        list[str],
        doc(
            "Allowed requests: read, write, @admin, @operator, @readonly, single ones such as"
            " instance.startup or instance.*; a minus sign in front forbids"
        ),
    ]
    #: seconds since 1970, None for never
    expires: Annotated[
        float | None,
        doc("Time until the token expires, such as 12h, 90d or 26w; by default it never expires"),
    ] = None
    group: Annotated[
        str | None, doc("Limit the token to the nodes and instances of a node group")
    ] = None
    tag: Annotated[str | None, doc("Limit the token to instances with a tag")] = None
    quota: Annotated[
        Quota | None,
        doc(
            "Maximum for all instances of the token together: instances, memory, vcpus, disk"
            " (memory and disk in MiB or with a unit)"
        ),
    ] = None


class Token(TokenSettings, frozen=True, kw_only=True, omit_defaults=True):
    """The record of a token."""

    id: str
    name: str
    digest: str
    created: float

    def __repr__(self) -> str:
        return f"Token({self.id}, {self.name})"

    @property
    def identity(self) -> Identity:
        # A user's name has no colon, so nobody can be taken for a token.
        name, limits = f"token:{self.name}", None
        if self.group is not None or self.tag is not None:
            limits = Limits(name=name, group=self.group, tag=self.tag, quota=self.quota)
        return Identity(name, frozenset(self.permissions), limits)

    @property
    def fingerprint(self) -> str:
        """Changes with everything that is kept of the token."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

    def expired(self, now: float) -> bool:
        return self.expires is not None and now >= self.expires


class _File(msgspec.Struct, forbid_unknown_fields=True):
    tokens: list[Token] = []


class Tokens:
    """The tokens of one state of the file."""

    def __init__(self, tokens: Iterable[Token] = ()) -> None:
        self._by_id = {token.id: token for token in tokens}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Token]:
        return iter(self._by_id.values())

    def check(self, text: str, now: float) -> Identity | None:
        """The user of this token; None when it is unknown, wrong or over."""
        found = self.find(text, now)
        return None if found is None else found.identity

    def get(self, number: str, now: float) -> Token | None:
        """The token of this id; None when it is unknown or over."""
        found = self._by_id.get(number)
        return None if found is None or found.expired(now) else found

    def find(self, text: str, now: float) -> Token | None:
        """The record of this token; None when it is unknown, wrong or over."""
        match = _TOKEN.fullmatch(text)
        if match is None:
            return None
        token = self._by_id.get(match[1])
        digest = token.digest if token is not None else "0" * 64
        right = hmac.compare_digest(digest_of(text), digest)
        if token is None or not right or token.expired(now):
            return None
        return token


def looks_like_token(text: str) -> bool:
    return _TOKEN.fullmatch(text) is not None


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def read(path: Path) -> Tokens:
    """Tokens of a file; none if there is no file.

    Raises:
        ParseError: it is damaged; the text says where.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return Tokens()
    try:
        found = typed.decode(raw, _File).tokens
        for token in found:
            permissions.parse(token.permissions)
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise errors.ParseError(f"{path}: {err}") from err
    return Tokens(found)


def add(
    path: Path,
    name: str,
    held: Iterable[str],
    *,
    now: float,
    expires: float | None = None,
    group: str | None = None,
    tag: str | None = None,
    quota: Quota | None = None,
) -> str:
    """Make a token and keep its digest; the token itself is only ever in the result.

    Raises:
        ParseError: a permission or the name cannot be used, a token has the name already, or a
            quota is given for the whole cluster.
    """
    users.check_name(name)
    granted = sorted(permissions.parse(held))
    if quota is not None and group is None and tag is None:
        raise errors.ParseError("A quota needs a node group or a tag whose instances it counts")
    with users.lock_file(path):
        known = list(read(path))
        if any(token.name == name and not token.expired(now) for token in known):
            raise errors.ParseError(
                f"There is a token '{name}' already; revoke it or take another name"
            )
        number = secrets.token_hex(4)
        text = f"gnt_{number}_{secrets.token_urlsafe(32)}"
        token = Token(
            id=number,
            name=name,
            digest=digest_of(text),
            permissions=granted,
            created=now,
            expires=expires,
            group=group,
            tag=tag,
            quota=quota,
        )
        _write(path, [*(item for item in known if item.name != name), token])
    return text


def revoke(path: Path, names: Iterable[str]) -> list[str]:
    """Take tokens out by name or id; the words that name none."""
    wanted = set(names)
    with users.lock_file(path):
        known = list(read(path))
        kept = [token for token in known if not {token.name, token.id} & wanted]
        if len(kept) < len(known):
            _write(path, kept)
    found = {word for token in known for word in (token.name, token.id)}
    return sorted(wanted - found)


def _write(path: Path, tokens: list[Token]) -> None:
    text = msgspec.json.format(msgspec.json.encode(_File(tokens)), indent=1)
    users.write_private(path, text.decode() + "\n", _MODE)
