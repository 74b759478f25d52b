"""ID tokens of OpenID Connect: signature and claims; the only module that imports joserfc. Pure.

Source: OpenID Connect Core 1.0, section 3.1.3.7.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from ganeti import errors
from ganeti.rapi.login_settings import OidcSettings

#: Signatures with a public key only: with a shared secret, or none, anybody could make a token.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
#: Seconds that clocks may differ, and the greatest age of a token.
SKEW, OLDEST = 60.0, 600.0
#: Characters of a token.
_LONGEST = 32_768


def read_keys(value: object) -> KeySet:
    """The public keys that a provider publishes.

    Raises:
        AuthenticationError: they cannot be used.
    """
    try:
        return KeySet.import_key_set(value)  # type: ignore[arg-type]
    except (JoseError, TypeError, ValueError, KeyError, AttributeError) as err:
        raise errors.AuthenticationError(f"its keys cannot be read: {err}") from err


def verify(
    token: object, keys: KeySet, settings: OidcSettings, nonce: str, now: float
) -> Mapping[str, object]:
    """The claims of a token that the provider made for us, for this log-in, just now.

    Raises:
        UnknownKey: it is signed by a key that is not among these.
        AuthenticationError: it proves nothing; the text says why, without the token.
    """
    if not isinstance(token, str) or len(token) > _LONGEST:
        raise errors.AuthenticationError("there is no ID token in the answer")
    try:
        found = jwt.decode(token, keys, algorithms=list(ALGORITHMS))
    except (JoseError, TypeError, ValueError) as err:
        # Keys may have changed since they were fetched; other errors look alike.
        raise UnknownKey(f"the signature is not good: {err}") from err
    claims = found.claims
    _check_parties(claims, settings)
    _check_times(claims, now)
    if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise errors.AuthenticationError("the ID token is of another log-in")
    if not isinstance(claims.get("sub"), str) or not claims["sub"]:
        raise errors.AuthenticationError("the ID token names nobody")
    return claims


class UnknownKey(errors.AuthenticationError):
    """A signature that none of the known keys has made."""


def _check_parties(claims: Mapping[str, object], settings: OidcSettings) -> None:
    if claims.get("iss") != settings.issuer:
        raise errors.AuthenticationError("the ID token is of another issuer")
    given = claims.get("aud")
    audience = given if isinstance(given, list) else [given]
    if settings.client_id not in audience:
        raise errors.AuthenticationError("the ID token is for another audience")
    party = claims.get("azp")
    if party not in (None, settings.client_id) or (party is None and len(audience) > 1):
        raise errors.AuthenticationError("the ID token was made for another client")


def _check_times(claims: Mapping[str, Any], now: float) -> None:
    for name in ("exp", "iat"):
        if not _is_number(claims.get(name)):
            raise errors.AuthenticationError(f"the ID token has no {name}")
    if now > claims["exp"] + SKEW:
        raise errors.AuthenticationError("the ID token has expired")
    if not now - OLDEST <= claims["iat"] <= now + SKEW:
        raise errors.AuthenticationError("the ID token was not made just now; do the clocks agree?")
    begin = claims.get("nbf", claims["iat"])
    if not _is_number(begin) or begin > now + SKEW:
        raise errors.AuthenticationError("the ID token is not valid yet")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
