"""Stored passwords; the only module that imports bcrypt. Pure but for the time it takes."""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache

import bcrypt

from ganeti import errors

REALM = "Ganeti Remote API"
#: Two to the power of this many rounds; some 0.2 s on a server of 2020.
COST = 12
#: bcrypt looks at no more bytes than these.
LONGEST = 72
_CLEARTEXT, _HA1, _BCRYPT = "{cleartext}", "{ha1}", "{bcrypt}"


def check_form(stored: str) -> None:
    """Whether a stored password can be used.

    Raises:
        ParseError: unknown or malformed scheme; the text does not repeat the password.
    """
    if not stored.startswith("{"):
        return
    scheme, closed, rest = stored.lower().partition("}")
    scheme += closed
    if scheme == _CLEARTEXT:
        return
    if scheme == _HA1:
        if len(rest) == 32 and set(rest) <= set("0123456789abcdef"):
            return
        raise errors.ParseError("the password in {HA1} form is not 32 hexadecimal digits")
    if scheme == _BCRYPT:
        if len(rest) == 60 and rest.startswith("$2") and rest[4:6].isdigit():
            return
        raise errors.ParseError("the password in {BCRYPT} form is not a bcrypt hash ($2b$..)")
    raise errors.ParseError("the password has an unknown scheme in braces")


def matches(stored: str, user: str, given: bytes) -> bool:
    """Whether the password given is the one stored; the time does not depend on where they differ.

    A stored password without a scheme in braces is plain text.
    """
    scheme, closed, rest = stored.partition("}") if stored.startswith("{") else ("", "", stored)
    scheme = (scheme + closed).lower()
    if scheme == _BCRYPT:
        return len(given) <= LONGEST and _bcrypt_matches(given, rest)
    if scheme == _HA1:
        text = b":".join((user.encode(), REALM.encode(), given))
        found = hashlib.md5(text, usedforsecurity=False).hexdigest()
        return hmac.compare_digest(found.encode(), rest.lower().encode())
    # Digests have one length, so that of the password does not show.
    expected, received = (hashlib.sha256(part).digest() for part in (rest.encode(), given))
    return hmac.compare_digest(expected, received)


def _bcrypt_matches(given: bytes, stored: str) -> bool:
    try:
        return bcrypt.checkpw(given, stored.encode("ascii"))
    except ValueError:  # a NUL byte, or a hash that only looked like one
        return False


def cost_of(stored: str) -> int:
    """Rounds of a bcrypt hash as power of two; 0 for the schemes that take no time."""
    scheme, _, rest = stored.partition("}")
    return int(rest[4:6]) if scheme.lower() + "}" == _BCRYPT else 0


def waste(cost: int, given: bytes) -> None:
    """Spend the time of one bcrypt comparison, so that timing does not reveal which users exist."""
    if cost:
        _bcrypt_matches(given[:LONGEST], _hash_nobody(cost))


@lru_cache(maxsize=4)
def _hash_nobody(cost: int) -> str:
    return bcrypt.hashpw(b"nobody", bcrypt.gensalt(cost)).decode("ascii")


def store(password: str, cost: int = COST) -> str:
    """The form in which a new password is kept.

    Raises:
        ParseError: empty, too long for bcrypt, or with a NUL byte or an end of line.
    """
    raw = password.encode()
    if not raw or b"\0" in raw or b"\n" in raw:
        raise errors.ParseError("A password must not be empty and holds no NUL or end of line")
    if len(raw) > LONGEST:
        raise errors.ParseError(f"A password may have {LONGEST} bytes, this one has {len(raw)}")
    return "{BCRYPT}" + bcrypt.hashpw(raw, bcrypt.gensalt(cost)).decode("ascii")
