"""Sessions of browsers: who has logged in, for how long, and what still backs it.

A session lives in the memory of one ``ganeti-rapi``, which keeps it in a file only while it is
restarted. So it ends when another node becomes the master. Of its secret only a digest is kept.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ganeti import errors
from ganeti.base import files, typed
from ganeti.base.clock import SYSTEM, Clock
from ganeti.rapi.backing import Backing
from ganeti.rapi.identity import WRITE, Identity

log = logging.getLogger(__name__)

#: Name of the cookie; browsers take this prefix only over HTTPS, for this host and all its paths.
COOKIE = "__Host-ganeti"
CSRF_HEADER = "X-Ganeti-CSRF"
#: Seconds without a request, and since the log-in, after which a session ends.
IDLE, TOTAL = 3600.0, 12 * 3600.0
#: Sessions of one user and of all; the one that was not used for longest ends first.
MOST_OF_USER, MOST = 20, 1000
#: Characters kept of what a browser says of itself.
_AGENT = 120
#: Seconds that a daemon may be away for its sessions to go on.
RESTART = 600.0

#: Returns the user of a session while its user or token exists unchanged; else None.
Identify = Callable[[Backing], Identity | None]


@dataclass
class Session:
    """One log-in. ``id`` names it and is not a secret; times are seconds since 1970."""

    id: str
    user: str
    csrf: str = field(repr=False)
    address: str
    agent: str
    created: float
    used: float
    backing: Backing = field(repr=False)
    digest: bytes = field(repr=False)

    @property
    def expires(self) -> float:
        """When it ends if no request comes."""
        return min(self.used + IDLE, self.created + TOTAL)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The sessions of a daemon that has stopped, and when it did."""

    stopped: float
    sessions: list[Session]


class Sessions:
    """All sessions. Thread-safe."""

    def __init__(self, identify: Identify, clock: Clock = SYSTEM) -> None:
        self._identify_by = identify
        self._clock = clock
        self._mutex = threading.Lock()
        self._by_digest: dict[bytes, Session] = {}
        #: called after sessions have ended before their time; what they hold open is asked again
        self.on_end: Callable[[], None] = lambda: None

    def open(self, backing: Backing, address: str, agent: str = "") -> tuple[Session, str]:
        """A new session and its secret, which is never one that a client named.

        Raises:
            AuthenticationError: what backs the session has changed meanwhile.
        """
        identity = self._identify_by(backing)
        if identity is None:
            raise errors.AuthenticationError("The user or token has just changed; log in again")
        secret, now = secrets.token_urlsafe(32), self._clock.now()
        made = Session(
            id=secrets.token_hex(8),
            user=identity.name,
            csrf=secrets.token_urlsafe(32),
            address=address,
            agent="".join(letter for letter in agent if letter.isprintable())[:_AGENT],
            created=now,
            used=now,
            backing=backing,
            digest=_digest(secret),
        )
        with self._mutex:
            self._by_digest[made.digest] = made
        log.info("session %s of %s opened from %s", made.id, made.user, address)
        self._end_surplus(made.user)
        return made, secret

    def keep(self, path: Path) -> None:
        """Write the sessions to a file, for the daemon that follows this one.

        Raises:
            OSError: it cannot be written.
        """
        found = self.all()
        if found:
            raw = msgspec.json.encode(_File(self._clock.now(), found))
            files.write_atomic(path, raw, mode=0o600)

    def restore(self, path: Path) -> None:
        """Go on with the sessions of the daemon before this one, unless that was long ago.

        The file counts once: a session that is ended from now on never comes back.
        """
        try:
            raw = path.read_bytes()
            path.unlink()
            found = typed.decode(raw, _File)
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError, msgspec.DecodeError) as err:
            log.warning("%s: users have to log in again: %s", path, err)
            return
        if 0 <= self._clock.now() - found.stopped <= RESTART:
            with self._mutex:
                self._by_digest |= {session.digest: session for session in found.sessions}
            self.check_all()
        log.info("%d of %d sessions go on", len(self.all()), len(found.sessions))

    def _end_surplus(self, user: str) -> None:
        of_user = self._by_use(item for item in self.all() if item.user == user)
        surplus = [*of_user[:-MOST_OF_USER], *self._by_use(self.all())[:-MOST]]
        self._end(surplus, "too many sessions")

    @staticmethod
    def _by_use(found: Iterable[Session]) -> list[Session]:
        return sorted(found, key=lambda item: item.used)

    def find(self, secret: str) -> tuple[Session, Identity] | None:
        """The session of a secret and who it is now; counts as a use. None: it has ended."""
        with self._mutex:
            found = self._by_digest.get(_digest(secret))
        identity = None if found is None else self._identify(found)
        if found is None or identity is None:
            return None
        found.used = self._clock.now()
        return found, identity

    def is_alive(self, session: Session) -> bool:
        """Whether a session still counts; is no use of it."""
        return self._identify(session) is not None

    def _identify(self, session: Session) -> Identity | None:
        if self._by_digest.get(session.digest) is not session:
            return None
        if self._clock.now() >= session.expires:
            self._end([session], "expired")
            return None
        identity = self._identify_by(session.backing)
        if identity is None:
            self._end([session], "user or token changed")
        return identity

    def all(self) -> list[Session]:
        """Sessions that have not ended, the oldest first."""
        now = self._clock.now()
        with self._mutex:
            found = [item for item in self._by_digest.values() if now < item.expires]
        return sorted(found, key=lambda item: (item.created, item.id))

    def end(self, number: str, identity: Identity) -> bool:
        """End a session by its id; False when this one has none of that id, or may not see it."""
        found = [item for item in self.visible(identity) if item.id == number]
        self._end(found, f"ended by {identity.name}")
        return bool(found)

    def visible(self, identity: Identity) -> list[Session]:
        """Sessions of a user; for administrators those of all."""
        everything = is_administrator(identity)
        return [item for item in self.all() if everything or item.user == identity.name]

    def check_all(self) -> None:
        """End the sessions that nothing backs any more, and those that are over."""
        for session in [*self._by_digest.values()]:
            self._identify(session)

    def _end(self, sessions: Iterable[Session], reason: str) -> None:
        ended = False
        for session in sessions:
            with self._mutex:
                removed = self._by_digest.pop(session.digest, None) is session
            if removed:
                log.info("session %s of %s: %s", session.id, session.user, reason)
            ended |= removed
        if ended:
            self.on_end()


def is_administrator(identity: Identity) -> bool:
    """Whether somebody may see and end what belongs to others."""
    return WRITE in identity.permissions and not identity.limited


def check_csrf(session: Session, given: str | None) -> None:
    """Let only requests pass that a page of ours has made.

    Raises:
        AccessError: the header is missing or is not that of the session.
    """
    if not hmac.compare_digest(session.csrf.encode(), (given or "").encode("utf-8", "replace")):
        raise errors.AccessError(
            f"A request of a session needs the header {CSRF_HEADER} with the session's csrf"
            " (GET /2/sessions/current); nothing was done"
        )


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
