"""Log-in by OpenID Connect: Authorization Code with PKCE, state and nonce.

A browser is sent to the provider and comes back with a code, which this daemon exchanges for an ID
token. Each attempt is bound to the browser by a cookie, can be finished once, and ends after ten
minutes. Source: OpenID Connect Core 1.0, RFC 7636, RFC 9700.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import secrets
import threading
import urllib.parse
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ganeti import errors
from ganeti.base import files, jsonio
from ganeti.base.clock import SYSTEM, Clock
from ganeti.base.json_types import JsonObject
from ganeti.net import https
from ganeti.rapi import oidc_tokens
from ganeti.rapi.backing import Provided
from ganeti.rapi.identity import Identity
from ganeti.rapi.login_settings import OidcSettings, check_user
from ganeti.rapi.oidc_tokens import UnknownKey

log = logging.getLogger(__name__)

#: Seconds for an attempt to log in, and for each request to a provider.
ATTEMPT, TIMEOUT = 600.0, 5.0
#: Attempts that are kept, of all and of one address.
MOST, MOST_OF_ADDRESS = 2000, 50
#: Seconds that what a provider says of itself is kept, and between two looks for new keys.
FRESH, NEW_KEYS = 3600.0, 60.0
#: Requests to providers at the same time; a slow one must not take all threads of the daemon.
AT_ONCE = 4
#: Seconds to wait for one of these places.
PATIENCE = 0.5
_MOST_BYTES = 1 << 18

Settings = Callable[[], Mapping[str, OidcSettings]]


class Rejected(errors.AuthenticationError):
    """A log-in that did not work; ``code`` is the word by which the page knows why."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Attempt:
    """One log-in that has begun."""

    provider: str
    settings: OidcSettings
    address: str
    begun: float
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    #: digest of the secret in the cookie of the browser
    browser: bytes = field(repr=False)


class Attempts:
    """Log-ins that have begun, by their state. Thread-safe."""

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._mutex = threading.Lock()
        self._found: dict[str, Attempt] = {}

    def add(self, attempt: Attempt) -> str:
        """Keep an attempt; its state.

        Raises:
            ThrottledError: too many have begun from this address.
        """
        state = secrets.token_urlsafe(32)
        with self._mutex:
            limit = self._clock.monotonic() - ATTEMPT
            self._found = {key: item for key, item in self._found.items() if item.begun > limit}
            counts = Counter(item.address for item in self._found.values())
            if counts[attempt.address] >= MOST_OF_ADDRESS or len(self._found) >= MOST:
                raise errors.ThrottledError("Too many log-ins have begun; wait a moment", 60)
            self._found[state] = attempt
        return state

    def take(self, state: str, provider: str, browser: str) -> Attempt:
        """The attempt of a state, which is over by that.

        Raises:
            Rejected: there is none, or another browser began it.
        """
        with self._mutex:
            found = self._found.pop(state, None)
        if (
            found is None
            or found.provider != provider
            or self._clock.monotonic() - found.begun > ATTEMPT
            or not hmac.compare_digest(found.browser, _digest(browser))
        ):
            raise Rejected("expired", "The log-in is unknown, over, or of another browser")
        return found


@dataclass
class _Facts:
    """Facts that a provider publishes about itself."""

    authorize: str
    token: str
    keys_url: str
    keys: Any
    read: float
    keys_read: float


class Providers:
    """The identity providers of the settings. Thread-safe; methods block for some seconds."""

    def __init__(self, settings: Settings, clock: Clock = SYSTEM) -> None:
        self._settings = settings
        self._clock = clock
        self._attempts = Attempts(clock)
        self._places = threading.BoundedSemaphore(AT_ONCE)
        self._known: dict[tuple[str, str | None], _Facts] = {}

    def list_methods(self) -> list[dict[str, str]]:
        """The providers as the log-in page shows them."""
        return [
            {"name": "oidc", "title": item.title or name, "url": f"/2/oidc/{name}/login"}
            for name, item in sorted(self._settings().items())
        ]

    def begin(self, provider: str, address: str) -> tuple[str, str]:
        """Begin a log-in; returns the URL to send the browser to, and the secret of its cookie.

        Raises:
            Rejected: the provider does not answer, or there is none of this name.
            ThrottledError: too many have begun.
        """
        settings = self._find(provider)
        facts = self._ask(settings, lambda: self._learn(settings))
        browser, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        now = self._clock.monotonic()
        made = Attempt(provider, settings, address, now, nonce, verifier, _digest(browser))
        query = {
            "response_type": "code",
            "client_id": settings.client_id,
            "redirect_uri": settings.redirect_uri,
            "scope": " ".join(settings.scopes),
            "state": self._attempts.add(made),
            "nonce": nonce,
            "code_challenge": _encode(hashlib.sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        joint = "&" if "?" in facts.authorize else "?"
        return f"{facts.authorize}{joint}{urllib.parse.urlencode(query)}", browser

    def finish(self, provider: str, answer: Mapping[str, str], browser: str) -> Provided:
        """Return the backing of the session of a user who came back with this answer.

        Raises:
            Rejected: the answer proves nothing, or the user has no rights here.
        """
        attempt = self._attempts.take(answer.get("state", ""), provider, browser)
        settings = attempt.settings
        if self._settings().get(provider) != settings:
            raise Rejected("expired", "The settings of the provider have just changed")
        if answer.get("iss", settings.issuer) != settings.issuer:
            raise Rejected("proof", "The answer is of another issuer")
        if "error" in answer or not answer.get("code"):
            raise Rejected("refused", f"{provider} answers {answer.get('error', '')!r:.60}")
        claims = self._ask(settings, lambda: self._exchange(attempt, answer["code"]))
        return self._make_backing(provider, settings, claims)

    def _make_backing(
        self, provider: str, settings: OidcSettings, claims: Mapping[str, object]
    ) -> Provided:
        user = check_user(claims.get(settings.user_claim))
        if user is None:
            raise Rejected("proof", f"The ID token has no usable {settings.user_claim}")
        given = claims.get(settings.groups_claim)
        names = given if isinstance(given, list) else []
        groups = tuple(name for name in names if isinstance(name, str))
        made = Provided(provider, settings.issuer, settings.client_id, user, groups)
        if self.identify(made) is None:
            raise Rejected("groups", f"No group of {provider}:{user} has rights here")
        return made

    def identify(self, backing: Provided) -> Identity | None:
        """The user by the present settings; None if the name is of another provider now."""
        now = self._settings().get(backing.provider)
        if now is None or (now.issuer, now.client_id) != (backing.issuer, backing.client_id):
            return None
        return now.identify(backing.provider, backing.user, backing.groups)

    def _find(self, provider: str) -> OidcSettings:
        found = self._settings().get(provider)
        if found is None:
            raise Rejected("expired", f"There is no provider {provider[:40]}")
        return found

    # requests to the provider ----------------------------------------------------------------

    def _ask(self, settings: OidcSettings, ask: Callable[[], object]) -> Any:
        if not self._places.acquire(timeout=PATIENCE):
            raise Rejected("unreachable", "Too many log-ins wait for providers")
        try:
            return ask()
        except (errors.RemoteError, errors.ParseError, errors.ParameterError, OSError) as err:
            text = str(err) if isinstance(err, OSError) else errors.text(err)
            log.warning("provider %s: %s", settings.issuer, text)
            raise Rejected("unreachable", f"{settings.issuer} does not work: {text}") from err
        except Rejected:
            raise
        except errors.AuthenticationError as err:
            raise Rejected("proof", errors.text(err)) from err
        finally:
            self._places.release()

    def _learn(self, settings: OidcSettings) -> _Facts:
        """The provider's description of itself, at most an hour old."""
        known = self._known.get(_key(settings))
        now = self._clock.monotonic()
        if known is not None and now - known.read < FRESH:
            return known
        url = f"{settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        answer = self._get(settings, url)
        if answer.get("issuer") != settings.issuer:
            raise errors.RemoteError("it says that it is another issuer")
        names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        authorize, token, keys_url = (str(answer.get(name, "")) for name in names)
        for address in (authorize, token, keys_url):
            https.check_url(address)
        keys = oidc_tokens.read_keys(self._get(settings, keys_url))
        made = _Facts(authorize, token, keys_url, keys, now, now)
        fresh = {key: item for key, item in self._known.items() if now - item.read < FRESH}
        self._known = {**fresh, _key(settings): made}
        return made

    def _exchange(self, attempt: Attempt, code: str) -> Mapping[str, object]:
        """The claims of the ID token for a code."""
        settings = attempt.settings
        facts = self._learn(settings)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": settings.redirect_uri,
            "code_verifier": attempt.verifier,
        }
        quoted = (
            urllib.parse.quote(t, safe="") for t in (settings.client_id, settings.client_secret)
        )
        answer = self._request(
            settings,
            "POST",
            facts.token,
            body=urllib.parse.urlencode(form).encode(),
            headers={
                "Authorization": "Basic " + base64.b64encode(":".join(quoted).encode()).decode(),
                "Content-Type": "application/x-www-form-urlencoded",
            },
        )
        now = self._clock.now()
        try:
            return oidc_tokens.verify(
                answer.get("id_token"), facts.keys, settings, attempt.nonce, now
            )
        except UnknownKey:
            if self._clock.monotonic() - facts.keys_read < NEW_KEYS:
                raise
        facts.keys_read = self._clock.monotonic()
        facts.keys = oidc_tokens.read_keys(self._get(settings, facts.keys_url))
        return oidc_tokens.verify(answer.get("id_token"), facts.keys, settings, attempt.nonce, now)

    def _get(self, settings: OidcSettings, url: str) -> JsonObject:
        return self._request(settings, "GET", url)

    def _request(self, settings: OidcSettings, method: str, url: str, **more: Any) -> JsonObject:
        authority = None if settings.ca_file is None else files.read_text(Path(settings.ca_file))
        context = https.make_context(authority)
        answer = https.request(
            method, url, context=context, timeout=TIMEOUT, most=_MOST_BYTES, **more
        )
        if answer.status in (400, 401, 403) and method == "POST":
            raise Rejected("refused", f"{settings.issuer} refuses the code ({answer.status})")
        if answer.status != 200:
            raise errors.RemoteError(f"{url} answers with the status {answer.status}")
        read = jsonio.loads(answer.body)
        if not isinstance(read, dict):
            raise errors.RemoteError(f"{url} answers with something else than an object")
        return read


def _key(settings: OidcSettings) -> tuple[str, str | None]:
    """Settings on which the facts about a provider depend."""
    return settings.issuer, settings.ca_file


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
