"""Passwords of users of an LDAP directory: limits of requests, and how long one is remembered.

A directory that does not answer must not block requests of others; see
:mod:`ganeti.rapi.directory_search` for what is asked.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from ganeti import errors
from ganeti.base.clock import SYSTEM, Clock
from ganeti.rapi import failures
from ganeti.rapi.backing import Listed
from ganeti.rapi.identity import Identity
from ganeti.rapi.login_settings import LdapSettings, check_user

log = logging.getLogger(__name__)

#: Passwords that are asked for at the same time, and seconds to wait for one of these places.
AT_ONCE, PATIENCE = 4, 0.5
#: Seconds that a right password is remembered, and a server that does not answer is left alone.
REMEMBERED, DOWN = 60.0, 10.0
#: Right passwords that are remembered.
_MOST = 1000


@dataclass(frozen=True)
class _Proof:
    digest: bytes = field(repr=False)
    person: Listed
    settings: LdapSettings
    until: float


class Directory:
    """The directory of the settings, if there is one. Thread-safe."""

    def __init__(self, settings: Callable[[], LdapSettings | None], clock: Clock = SYSTEM) -> None:
        self._settings = settings
        self._clock = clock
        self._key = os.urandom(32)
        self._mutex = threading.Lock()
        self._places = threading.BoundedSemaphore(AT_ONCE)
        self._proofs: dict[str, _Proof] = {}
        self._down_until = float("-inf")

    @property
    def used(self) -> bool:
        """Whether there is a directory to ask."""
        return self._settings() is not None

    def identify(self, person: Listed) -> Identity | None:
        """The user by the present settings; None without rights, or in another directory."""
        now = self._settings()
        if now is None or (now.url, now.user_dn, now.user_base) != (
            person.url,
            person.user_dn,
            person.user_base,
        ):
            return None
        return now.identify("ldap", person.user, person.groups)

    def recall(self, name: str, password: bytes) -> Listed | None:
        """The user if this password was right a moment ago; takes no time."""
        found = self._proofs.get(name)
        if found is None or found.until < self._clock.monotonic():
            return None
        if found.settings != self._settings():
            return None
        return found.person if hmac.compare_digest(found.digest, self._digest(password)) else None

    def check(self, name: str, password: bytes) -> Listed | None:
        """The user if the password is right; blocks for some seconds at most.

        Raises:
            Refused: 503, the directory does not answer.
            ThrottledError: too many passwords are being asked for.
        """
        settings = self._settings()
        # A server takes a bind without a password for one of nobody, and says yes.
        if settings is None or not password or b"\0" in password or check_user(name) is None:
            return None
        if self._clock.monotonic() < self._down_until:
            raise _make_down_error()
        if not self._places.acquire(timeout=PATIENCE):
            raise errors.ThrottledError("Too many passwords are being checked", 1)
        from ganeti.rapi import directory_search  # only where there is a directory

        try:
            found = directory_search.prove(settings, name, password)
        except (OSError, errors.GanetiError) as err:
            self._down_until = self._clock.monotonic() + DOWN
            text = errors.text(err) if isinstance(err, errors.GanetiError) else str(err)
            log.error("directory %s: %s", settings.url, text)
            raise _make_down_error() from err
        finally:
            self._places.release()
        if found is not None:
            self._remember(found, settings, password)
        return found

    def _remember(self, person: Listed, settings: LdapSettings, password: bytes) -> None:
        now = self._clock.monotonic()
        with self._mutex:
            kept = {key: item for key, item in self._proofs.items() if item.until >= now}
            if len(kept) < _MOST:
                digest = self._digest(password)
                kept[person.user] = _Proof(digest, person, settings, now + REMEMBERED)
            self._proofs = kept

    def _digest(self, password: bytes) -> bytes:
        return hmac.digest(self._key, password, hashlib.sha256)


def _make_down_error() -> failures.Refused:
    return failures.Refused(
        503,
        "The directory of users does not answer; users of the remote API's own file can log in",
        {"Retry-After": str(int(DOWN))},
    )
