"""Names to addresses and services to ports.

A cluster below a root of its own (``GANETI_ROOTDIR``) has its own ``<root>/etc/hosts`` and
``<root>/etc/services`` in the usual formats; they come first, then the system is asked.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from ganeti import constants, errors, paths

T = TypeVar("T")


class _ParsedFile(Generic[T]):
    """Parsed contents of files, read again when time or size of a file changes."""

    def __init__(self, parse: Callable[[list[list[str]]], T]) -> None:
        self._parse = parse
        self._lock = threading.Lock()
        self._known: dict[Path, tuple[tuple[int, int], T]] = {}

    def get(self, path: Path) -> T:
        """The parsed file; like an empty one when it does not exist.

        Raises:
            OSError: it exists but cannot be read.
        """
        try:
            info = path.stat()
        except FileNotFoundError:
            return self._parse([])
        stamp = (info.st_mtime_ns, info.st_size)
        with self._lock:
            entry = self._known.get(path)
        if entry is not None and entry[0] == stamp:
            return entry[1]
        value = self._parse(_words(path))
        with self._lock:
            self._known[path] = (stamp, value)
        return value


def _words(path: Path) -> list[list[str]]:
    """Words of each line that has any, without comments."""
    text = path.read_text(encoding="utf-8", errors="replace")
    lines = (line.split("#", 1)[0].split() for line in text.splitlines())
    return [words for words in lines if words]


class _Hosts:
    """A hosts file: the first line of a name and the first name of an address count."""

    def __init__(self, lines: list[list[str]]) -> None:
        self.addresses: dict[str, list[str]] = {}
        self.names: dict[bytes, str] = {}
        for ip, *names in lines:
            packed = _pack(ip)
            if packed is None or not names:
                continue
            self.names.setdefault(packed, names[0])
            for name in names:
                self.addresses.setdefault(name.lower(), []).append(ip)


def _parse_services(lines: list[list[str]]) -> dict[tuple[str, str], int]:
    """Ports by protocol, and service name or alias."""
    found: dict[tuple[str, str], int] = {}
    for words in lines:
        if len(words) < 2:
            continue
        number, _, protocol = words[1].partition("/")
        if not number.isdigit():
            continue
        for name in (words[0], *words[2:]):
            found.setdefault((protocol, name), int(number))
    return found


_hosts = _ParsedFile(_Hosts)
_services = _ParsedFile(_parse_services)


def _pack(ip: str) -> bytes | None:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            return socket.inet_pton(family, ip)
        except (OSError, ValueError):
            continue
    return None


def is_address(text: str) -> bool:
    """Whether a text is an IPv4 or IPv6 address."""
    return _pack(text) is not None


def family(ip: str) -> socket.AddressFamily:
    """The address family of an IP address."""
    return socket.AF_INET6 if ":" in ip else socket.AF_INET


def address(name: str) -> str:
    """The address of a host, IPv4 if it has one; an address is its own.

    Asking the system may block as long as its resolver does (its own time-outs).

    Raises:
        ResolverError: (name, code, text) when nobody knows the name.
    """
    if is_address(name):
        return name
    if paths.is_rooted():
        found = _hosts.get(paths.current().hosts).addresses.get(name.lower())
        if found:
            return next((ip for ip in found if ":" not in ip), found[0])
    try:
        answers = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except socket.gaierror as err:
        raise errors.ResolverError(name, err.errno, err.strerror) from err
    except ValueError as err:
        # Not encodable as a name of the DNS, or with a zero byte in it.
        raise errors.ResolverError(name, socket.EAI_NONAME, "is not a host name") from err
    best = min(answers, key=lambda answer: answer[0] != socket.AF_INET)
    return str(best[4][0])


def canonical(name: str) -> str:
    """The full name of a host that has an address: what an alias or a short name stands for.

    Blocks and raises as :func:`address`.
    """
    if paths.is_rooted() and _hosts.get(paths.current().hosts).addresses.get(name.lower()):
        return reverse(address(name)) or name
    try:
        answers = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME)
    except socket.gaierror as err:
        raise errors.ResolverError(name, err.errno, err.strerror) from err
    except ValueError as err:
        raise errors.ResolverError(name, socket.EAI_NONAME, "is not a host name") from err
    return next((answer[3] for answer in answers if answer[3]), name)


def reverse(ip: str) -> str | None:
    """The first name of an address in the hosts file; None when the file has none."""
    packed = _pack(ip)
    return None if packed is None else _hosts.get(paths.current().hosts).names.get(packed)


def port(service: str) -> int:
    """The port of a daemon: cluster's services file, system, built-in default.

    Raises:
        ResolverError: (name, code, text) when none of them knows the service.
    """
    protocol = "udp" if service in constants.UDP_SERVICES else "tcp"
    if paths.is_rooted():
        found = _services.get(paths.current().services).get((protocol, service))
        if found is not None:
            return found
    try:
        return socket.getservbyname(service, protocol)
    except OSError:
        # Not in the system's list, which is the usual case.
        pass
    default = constants.DEFAULT_PORTS.get(service)
    if default is None:
        raise errors.ResolverError(service, socket.EAI_SERVICE, "has no known port")
    return default
