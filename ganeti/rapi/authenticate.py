"""From an ``Authorization`` header to the one who asks; follows changes of the files."""

from __future__ import annotations

import base64
import binascii
import logging
import threading
from collections.abc import Callable
from pathlib import Path

from ganeti import errors
from ganeti.base import files, inotify
from ganeti.base.clock import SYSTEM, Clock
from ganeti.rapi import login_settings, tokens, users
from ganeti.rapi.backing import Backing, KnownToken, Listed, Password, Provided
from ganeti.rapi.directory import Directory
from ganeti.rapi.identity import ANONYMOUS, Identity
from ganeti.rapi.login_settings import Settings
from ganeti.rapi.oidc import Providers
from ganeti.rapi.throttle import Throttle
from ganeti.rapi.tokens import Tokens
from ganeti.rapi.users import Users

log = logging.getLogger(__name__)

#: Name of the file with services that say who somebody is.
_SETTINGS = "login.toml"

#: Slow passwords that are computed at the same time; more would leave no thread for others.
AT_ONCE = 4
#: Seconds to wait for one of these places.
PATIENCE = 2.0


class Authenticator:
    """Knows users and tokens, and who guesses. Thread-safe.

    Files are read again when they change; one that cannot be understood changes nothing and is
    told in the log, so that a slip of the pen locks nobody out.
    """

    def __init__(self, directory: Path, *, anonymous: bool = True, clock: Clock = SYSTEM) -> None:
        """Read ``users``, ``tokens`` and ``login.toml`` in a directory, which may be missing then.

        ``anonymous`` lets those in who do not say who they are, unless ``users`` says otherwise;
        they have no permission.
        """
        self._directory = directory
        self._anonymous = anonymous
        self._users_let_in = True
        self._clock = clock
        self._throttle = Throttle(clock)
        self._places = threading.BoundedSemaphore(AT_ONCE)
        self._users = Users()
        self._tokens = Tokens()
        self._settings = Settings()
        self._people = Directory(lambda: self._settings.ldap, clock)
        self.providers = Providers(lambda: self._settings.oidc, clock)
        self._watcher: inotify.DirectoryWatcher | None = None
        #: called when users or tokens may be others than before, so that who is in is asked again
        self.on_change: Callable[[], None] = lambda: None
        self._load_users(first=True)
        self._load_tokens()
        self._load_settings()

    # following the files

    def start(self) -> None:
        """Watch the files from now on.

        Raises:
            InotifyError: the directory cannot be watched.
        """
        files.ensure_dir(self._directory)
        self._watcher = inotify.DirectoryWatcher(self._directory, self._reload_changed)
        self.reload()
        self._watcher.start()

    def stop(self) -> None:
        """End the watch. Idempotent."""
        if self._watcher is not None:
            self._watcher.stop()

    def reload(self) -> None:
        """Read all files now."""
        self._load_users()
        self._load_tokens()
        self._load_settings()

    def _reload_changed(self, name: str) -> None:
        if name in ("users", inotify.ANY_NAME):
            self._load_users()
        if name in ("tokens", inotify.ANY_NAME):
            self._load_tokens()
        if name in (_SETTINGS, inotify.ANY_NAME):
            self._load_settings()

    def _load_users(self, *, first: bool = False) -> None:
        path = self._directory / "users"
        try:
            text = files.read_text(path)
        except FileNotFoundError:
            text = ""
        except (OSError, UnicodeDecodeError) as err:
            log.error("%s cannot be read, the users stay as they are: %s", path, err)
            return
        found, problems = users.parse(text)
        for problem in problems:
            log.log(logging.ERROR if problem.broken else logging.WARNING, "%s, %s", path, problem)
        if not first and any(problem.broken for problem in problems):
            log.error("%s is refused, the users stay as they are", path)
            return
        self._users = Users(found.values())
        self._users_let_in = users.lets_anonymous_in(text)
        log.info("%s: %d users", path, len(found))
        self.on_change()

    def _load_tokens(self) -> None:
        path = self._directory / "tokens"
        try:
            self._tokens = tokens.read(path)
        except (errors.ParseError, OSError) as err:
            log.error("%s is refused, the tokens stay as they are: %s", path, err)
            return
        log.info("%s: %d tokens", path, len(self._tokens))
        self.on_change()

    def _load_settings(self) -> None:
        path = self._directory / _SETTINGS
        try:
            text = files.read_text(path)
        except FileNotFoundError:
            text = ""
        except (OSError, UnicodeDecodeError) as err:
            log.error("%s cannot be read, log-in stays as it is: %s", path, err)
            return
        try:
            self._settings = login_settings.parse(text)
        except errors.ParseError as err:
            log.error("%s is refused, log-in stays as it is: %s", path, errors.text(err))
            return
        if text:
            count = len(self._settings.oidc)
            asked = "a" if self._settings.ldap is not None else "no"
            log.info("%s: %d identity providers, %s directory", path, count, asked)
        self.on_change()

    # one request

    def __call__(self, header: str | None, address: str) -> Identity:
        """The user of this header from this address. May take a moment for a slow password.

        Raises:
            AuthenticationError: nobody, or not the one it says.
            ThrottledError: too many wrong passwords came from there.
        """
        if header is None:
            if self._anonymous and self._users_let_in:
                return ANONYMOUS
            raise errors.AuthenticationError("A user name and a password, or a token, is needed")
        scheme, _, value = header.strip().partition(" ")
        if scheme.lower() == "bearer":
            return self._identify_by_token(value.strip(), address)
        if scheme.lower() == "basic":
            name, password = _basic(value.strip())
            text = password.decode("utf-8", "replace")
            if tokens.looks_like_token(text):
                return self._identify_by_token(text, address)
            return self._identify_by_password(name, password, address)
        raise errors.AuthenticationError("Only Basic and Bearer authentication is known")

    def list_methods(self) -> list[dict[str, str]]:
        """Ways to log in, for the page of a browser."""
        return [{"name": "password"}, *self.providers.list_methods()]

    def log_in(self, name: str, password: bytes, address: str) -> Backing:
        """Return the backing for a session by a password; as slow and as strict as a request.

        Raises:
            AuthenticationError: the user or the password is wrong.
            ThrottledError: too many wrong passwords came from there.
        """
        line = self._users.find(name)
        if line is None and self._people.used:
            return self._ask_directory(name, password, address)
        self._identify_by_password(name, password, address)
        return Password(name, "" if line is None else line.fingerprint)

    def log_in_by_token(self, text: str, address: str) -> Backing:
        """Return the backing for a session by a token.

        Raises:
            AuthenticationError: the token is wrong or over.
            ThrottledError: too many wrong passwords came from there.
        """
        found = self._tokens.find(text, self._clock.now())
        if found is None:
            self._refuse_early(address)
            raise self._make_error("token", address)
        return KnownToken(found.id, found.fingerprint)

    def identify(self, backing: Backing) -> Identity | None:
        """The user of a session while the line, token or rule is unchanged; else None."""
        match backing:
            case Password():
                line = self._users.find(backing.user)
                return line.identity if line and line.fingerprint == backing.line else None
            case KnownToken():
                token = self._tokens.get(backing.id, self._clock.now())
                return token.identity if token and token.fingerprint == backing.entry else None
            case Provided():
                return self.providers.identify(backing)
            case Listed():
                return self._people.identify(backing)

    def _make_error(self, what: str, address: str, name: str = "") -> errors.AuthenticationError:
        count = self._throttle.note_failure(address, name)
        log.warning("wrong %s from %s, number %d", what, address, count)
        return errors.AuthenticationError("User name, password or token is wrong")

    def _refuse_early(self, address: str, name: str = "") -> None:
        wait = self._throttle.wait(address, name)
        if wait > 0:
            raise errors.ThrottledError(
                "Too many wrong passwords of this name, or of others, came from your address;"
                " wait a moment",
                int(wait) + 1,
            )

    def _identify_by_token(self, text: str, address: str) -> Identity:
        # Nobody guesses a token, and comparing one costs nothing: it is always checked.
        found = self._tokens.check(text, self._clock.now())
        if found is None:
            self._refuse_early(address)
            raise self._make_error("token", address)
        return found

    def _ask_directory(self, name: str, password: bytes, address: str) -> Listed:
        """A user of the directory who has rights here.

        No lock is held meanwhile: a directory that does not answer stops no other log-in.
        """
        known = self._people.recall(name, password)
        if known is None:
            self._refuse_early(address, name)
            known = self._people.check(name, password)
        if known is None:
            raise self._make_error(f"password of {name!r:.60}", address, name)
        if self._people.identify(known) is None:
            log.warning("user %r of the directory has no group with rights here", name)
            raise errors.AuthenticationError("None of your groups has rights here")
        return known

    def _identify_by_password(self, name: str, password: bytes, address: str) -> Identity:
        if self._users.find(name) is None and self._people.used:
            person = self._ask_directory(name, password, address)
            identity = self._people.identify(person)
            if identity is None:  # the settings have changed in this very moment
                raise errors.AuthenticationError("None of your groups has rights here")
            return identity
        found = self._find_proved(name, password, address)
        if found is not None:
            return found
        with self._throttle.turn(address):
            # Another request may have proved the password, or failed, while this one waited.
            found = self._users.recall(name, password)
            if found is not None:
                return found
            self._refuse_early(address, name)
            if not self._places.acquire(timeout=PATIENCE):
                raise errors.ThrottledError("Too many passwords are being checked", 1)
            try:
                found = self._users.check(name, password)
            finally:
                self._places.release()
            if found is None:
                raise self._make_error(f"password of {name!r:.60}", address, name)
            return found

    def _find_proved(self, name: str, password: bytes, address: str) -> Identity | None:
        """The user by a password that was right before, also while others here have to wait.

        Raises:
            ThrottledError: one has to wait, and it was not right before.
        """
        blocked = self._throttle.wait(address, name) > 0
        if not blocked or self._throttle.may_prove(address, name):
            found = self._users.recall(name, password)
            if found is not None:
                return found
        if blocked:
            self._throttle.note_miss(address, name)
            self._refuse_early(address, name)
        return None


def _basic(value: str) -> tuple[str, bytes]:
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise errors.AuthenticationError("The Authorization header is not base64") from None
    name, colon, password = raw.partition(b":")
    if not colon:
        raise errors.AuthenticationError("The Authorization header has no colon")
    return name.decode("utf-8", "replace"), password
