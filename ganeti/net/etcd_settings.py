"""How an etcd cluster is reached: the file with the variables of ``etcdctl``."""

from __future__ import annotations

import ipaddress
import os
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ganeti import errors
from ganeti.base import files
from ganeti.net.tls.contexts import Identity

_PORT: Final = 2379
_ENDPOINTS: Final = "ETCDCTL_ENDPOINTS"
#: Variables of the file that name other files.
_FILES: Final = ("ETCDCTL_CACERT", "ETCDCTL_CERT", "ETCDCTL_KEY")


@dataclass(frozen=True, slots=True)
class Member:
    """The address at which one member of the etcd cluster serves clients."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Settings:
    """How the etcd cluster is reached."""

    members: tuple[Member, ...]
    #: None: without TLS
    identity: Identity | None = None


def read_settings(path: Path) -> Settings:
    """Settings from a file with the environment variables of etcdctl, one ``NAME=value`` a line.

    Raises:
        ParameterError: the file is missing, or something in it cannot be used.
    """
    try:
        text = files.read_text(path)
    except FileNotFoundError:
        raise errors.ParameterError(
            f"{path} is missing: write into it how etcd is reached, at least"
            f" {_ENDPOINTS}=https://HOST:{_PORT},..."
        ) from None
    except (OSError, UnicodeDecodeError) as err:
        reason = err.strerror if isinstance(err, OSError) else "it is not a text"
        raise errors.ParameterError(f"{path} cannot be read: {reason}") from err
    try:
        return _parse_settings(text)
    except errors.ParameterError as err:
        raise errors.ParameterError(f"{path}: {errors.text(err)}") from err


def _parse_settings(text: str) -> Settings:
    values: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.strip().removeprefix("export ")
        if not entry or entry.startswith("#"):
            continue
        name, found, value = entry.partition("=")
        if not found or name not in (_ENDPOINTS, *_FILES, "ETCDCTL_API"):
            raise errors.ParameterError(
                f"line {number} does not set one of {', '.join((_ENDPOINTS, *_FILES))}"
            )
        values[name] = value.strip().strip("\"'")
    if not values.get(_ENDPOINTS):
        raise errors.ParameterError(f"{_ENDPOINTS} is not set")
    found_urls = [_parse_url(url.strip()) for url in values[_ENDPOINTS].split(",")]
    members = tuple(dict.fromkeys(member for member, _secure in found_urls))
    schemes = {secure for _member, secure in found_urls}
    if len(schemes) > 1:
        raise errors.ParameterError(f"{_ENDPOINTS} mixes http and https")
    if schemes == {False}:
        return Settings(members)
    ca, cert, key = (Path(values[name]) if values.get(name) else None for name in _FILES)
    if ca is None:
        raise errors.ParameterError(f"{_FILES[0]} is not set: it names the authority of etcd")
    if (cert is None) != (key is None):
        raise errors.ParameterError(f"set both {_FILES[1]} and {_FILES[2]}, or neither")
    if key is not None:
        _check_key(key)
    return Settings(members, Identity(cert, ca, key_file=key))


def _parse_url(url: str) -> tuple[Member, bool]:
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as err:
        raise errors.ParameterError(f"{url[:80]!r} is not a URL: {err}") from err
    plain = parts.path in ("", "/") and not parts.query and "@" not in parts.netloc
    if parts.scheme not in ("http", "https") or not host or not plain:
        raise errors.ParameterError(f"{url[:80]!r} is not of the form https://HOST:{_PORT}")
    secure = parts.scheme == "https"
    if not secure and not _is_loopback(host):
        raise errors.ParameterError(
            f"{url[:80]!r}: without TLS only this server itself can be asked"
        )
    return Member(host, port or _PORT), secure


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_key(path: Path) -> None:
    """The private key is for root only; a missing file is found when it is loaded."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if mode & 0o077:
        raise errors.ParameterError(f"others than root can read the private key: chmod 600 {path}")
