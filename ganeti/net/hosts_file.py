"""The nodes of a cluster in ``/etc/hosts``: lines between two marks, nothing else is touched.

A name that the administrator has written outside of the marks stays as it is. The cluster changes
the file only where root of the node agreed: a mark in the data directory says so.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Iterable, Iterator, Sequence

from ganeti import errors
from ganeti.base import files
from ganeti.paths import Paths

log = logging.getLogger(__name__)

BEGIN = "# Nodes of the cluster, kept up to date by Ganeti: begin"
END = "# Nodes of the cluster, kept up to date by Ganeti: end"
_NAME = re.compile(
    r"(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]*[a-z0-9])?"
)
#: Names that every host has for itself.
_OWN = ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")


def add(text: str, name: str, ip: str) -> str:
    """The text with a node; the same when somebody else has a line for its name.

    Raises:
        ParameterError: this is not the name or the address of a node.
        ParseError: a mark is missing.
    """
    _check(name, ip)
    before, own, after = _split(text)
    kept = [line for line in own if name not in _names(line)]
    if any(name in _names(line) for line in (*before, *after)):
        return _join(before, kept, after)
    short = name.partition(".")[0]
    used = {each for line in (*before, *kept, *after) for each in _names(line)}
    words = (ip, name) if short == name or short in used else (ip, name, short)
    line = "\t".join(words)
    if line in own:
        return text
    return _join(before, [*kept, line], after)


def remove(text: str, name: str) -> str:
    """The text without a node; ParseError when a mark is missing."""
    before, own, after = _split(text)
    return _join(before, [line for line in own if name not in _names(line)], after)


def remove_all(text: str) -> str:
    """The text without any node; ParseError when a mark is missing."""
    before, _own, after = _split(text)
    return _join(before, [], after)


def change(paths: Paths, mode: str, name: str, ip: str) -> bool:
    """Add a node to the file of this host or remove it, durably; whether the file was changed.

    Raises:
        ParameterError, ParseError: as :func:`add`.
        GenericError: the file cannot be read or written.
    """
    if mode not in ("add", "remove"):
        raise errors.ParameterError(f"{mode[:20]!r} is neither add nor remove")
    text = _read(paths)
    return _write(paths, text, add(text, name, ip) if mode == "add" else remove(text, name))


def leave(paths: Paths) -> None:
    """Take out what the cluster wrote, and its leave to do so.

    A file that cannot be changed stays as it is, with a warning in the log.
    """
    if not paths.hosts_managed.exists():
        return
    try:
        text = _read(paths)
        _write(paths, text, remove_all(text))
    except errors.GanetiError as err:
        log.warning("%s keeps the lines of the cluster: %s", paths.hosts, errors.text(err))
    files.remove(paths.hosts_managed)


def _check(name: str, ip: str) -> None:
    if not _NAME.fullmatch(name) or name in _OWN:
        raise errors.ParameterError(f"{name[:80]!r} is not the name of a node")
    try:
        address = ipaddress.ip_address(ip)
    except ValueError as err:
        raise errors.ParameterError(f"{ip[:50]!r} is not an address") from err
    if address.is_unspecified or address.is_multicast:
        raise errors.ParameterError(f"no node can have the address {ip}")


def _names(line: str) -> Sequence[str]:
    return line.partition("#")[0].lower().split()[1:]


def _split(text: str) -> tuple[list[str], list[str], list[str]]:
    """Lines before the marks, between them, and after them."""
    lines = text.splitlines()
    found = [lines.count(mark) for mark in (BEGIN, END)]
    if found == [0, 0]:
        return lines, [], []
    if found != [1, 1] or lines.index(BEGIN) > lines.index(END):
        raise errors.ParseError(
            f"the lines '{BEGIN}' and '{END}' must both be there once, in this order: repair or"
            " remove them"
        )
    first, last = lines.index(BEGIN), lines.index(END)
    return lines[:first], lines[first + 1 : last], lines[last + 1 :]


def _join(before: Iterable[str], own: Sequence[str], after: Iterable[str]) -> str:
    def all_lines() -> Iterator[str]:
        yield from before
        if own:
            yield from (BEGIN, *own, END)
        yield from after

    return "".join(f"{line}\n" for line in all_lines())


def _read(paths: Paths) -> str:
    try:
        return files.read_text(paths.hosts) if paths.hosts.exists() else ""
    except (OSError, ValueError) as err:
        raise errors.GenericError(f"{paths.hosts} cannot be read: {err}") from err


def _write(paths: Paths, before: str, after: str) -> bool:
    if after == before:
        return False
    path = paths.hosts
    if path.is_symlink():
        raise errors.GenericError(f"{path} is a symbolic link, so it is not replaced")
    try:
        mode, owner, group = 0o644, -1, -1
        if path.exists():
            found = path.stat()
            mode, owner, group = found.st_mode & 0o777, found.st_uid, found.st_gid
        files.write_atomic(path, after, mode=mode, uid=owner, gid=group)
    except OSError as err:
        raise errors.GenericError(f"{path} cannot be written: {err.strerror}") from err
    return True
