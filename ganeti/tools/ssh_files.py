"""The files of SSH that join a node to its cluster, and requests about them on standard input."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from ganeti import errors
from ganeti.base import files, jsonio
from ganeti.paths import Paths

T = TypeVar("T", bound=msgspec.Struct)

KEY_TYPES = ("rsa", "dsa", "ecdsa", "ed25519")
#: What OpenSSH takes as a line with a public key; options before it are not ours to write.
_PUBLIC = re.compile(r"(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,3}(?: [^\n\r\0]*)?")
_PRIVATE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----\n.*\n-----END [A-Z ]*PRIVATE KEY-----\n?", re.S
)


class Places:
    """Where the files are; all below the root of a cluster in a directory."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self.user = paths.under("/root/.ssh")
        self.host = paths.under("/etc/ssh")
        self.authorized = self.user / "authorized_keys"
        self.cluster = paths.data / "ganeti_pub_keys"


def read_request(kind: type[T]) -> T:
    """The JSON object on standard input.

    Raises:
        ParameterError: it is none, a name in it is not known, or a value has the wrong type.
    """
    text = sys.stdin.read()
    try:
        return msgspec.convert(jsonio.loads(text), kind, strict=True)
    except errors.ParseError as err:
        raise errors.ParameterError(f"standard input is not JSON: {errors.text(err)}") from err
    except msgspec.ValidationError as err:
        raise errors.ParameterError(f"the request on standard input: {err}") from err


def check_cluster(paths: Paths, name: str, certificate: str | None) -> None:
    """Refuse a request of another cluster than the one that this server belongs to.

    Raises:
        OpPrereqError: name or certificate are those of another cluster.
    """
    known = paths.ssconf("cluster_name")
    if known.exists() and (here := files.read_text(known).strip()) != name:
        raise errors.make_state_error(f"this server belongs to cluster {here}, not to {name}")
    if certificate is None:
        return
    wanted = set(_certificates(certificate))
    if not wanted:
        raise errors.ParameterError("node_daemon_certificate has no certificate in it")
    have: set[str] = set()
    for file in (paths.server_cert, paths.ca_cert):
        if file.exists():
            have.update(_certificates(files.read_text(file)))
    if have and not wanted & have:
        raise errors.make_state_error(
            "node_daemon_certificate is neither that of this server nor of its cluster; remove"
            " what is left of another cluster with node-cleanup"
        )


def _certificates(text: str) -> list[str]:
    pattern = r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----"
    return [block.replace("\r", "") for block in re.findall(pattern, text, re.S)]


def check_public(key: str) -> str:
    """A line with a public key.

    Raises:
        ParameterError: it is none.
    """
    if not _PUBLIC.fullmatch(key.strip()):
        raise errors.ParameterError(f"{key.strip()[:40]!r} is not a public key of SSH")
    return key.strip()


def check_private(key: str) -> str:
    if not _PRIVATE.fullmatch(key):
        raise errors.ParameterError("a private key is not in PEM form")
    return key


def check_type(name: str) -> str:
    if name not in KEY_TYPES:
        raise errors.ParameterError(f"{name[:20]!r} is not a type of key: {', '.join(KEY_TYPES)}")
    return name


def changed_lines(
    old: Iterable[str], *, add: Iterable[str] = (), drop: Iterable[str] = ()
) -> list[str]:
    """Lines of ``authorized_keys`` without some keys and with others; each key once. Pure.

    Keys are the same when type and data are, whatever is said after them.
    """
    gone = {_identity(key) for key in drop}
    lines = [line for line in old if _identity(line) not in gone]
    known = {_identity(line) for line in lines}
    for key in add:
        if _identity(key) not in known:
            lines.append(key)
            known.add(_identity(key))
    return lines


def _identity(line: str) -> str:
    """Type and data of a key, wherever options end; the line itself for a comment."""
    found = re.search(r"((?:ssh|ecdsa|sk)-\S+ [A-Za-z0-9+/]+={0,3})", line)
    return found[1] if found and not line.lstrip().startswith("#") else line


def changed_keys(
    old: Mapping[str, list[str]], action: str, given: Mapping[str, list[str]]
) -> dict[str, list[str]]:
    """Keys of nodes after one of the actions of the interface. Pure.

    Raises:
        ParameterError: there is no such action.
    """
    if action == "clear":
        return {}
    if action == "override":
        return {uuid: list(keys) for uuid, keys in given.items()}
    found = {uuid: list(keys) for uuid, keys in old.items()}
    if action == "remove":
        for uuid in given:
            found.pop(uuid, None)
    elif action == "replace_or_add":
        found |= {uuid: list(keys) for uuid, keys in given.items()}
    elif action == "add":
        for uuid, keys in given.items():
            have = found.setdefault(uuid, [])
            have += [key for key in keys if key not in have]
    else:
        raise errors.ParameterError(
            f"{action[:20]!r} is not one of add, replace_or_add, remove, override, clear"
        )
    return found


def read_keys(path: Path) -> dict[str, list[str]]:
    """``ganeti_pub_keys``: a line ``<node uuid> <public key>`` for each key."""
    found: dict[str, list[str]] = {}
    for line in read_lines(path):
        uuid, _, key = line.partition(" ")
        if key:
            found.setdefault(uuid, []).append(key)
    return found


def keys_text(keys: Mapping[str, list[str]]) -> str:
    return "".join(f"{uuid} {key}\n" for uuid, found in keys.items() for key in found)


def read_lines(path: Path) -> list[str]:
    return files.read_text(path).splitlines() if path.exists() else []


def write(path: Path, text: str, mode: int, *, dry_run: bool, say: Callable[[str], None]) -> None:
    """Replace a file if its content changes; a dry run only says so."""
    if path.exists() and files.read_text(path) == text:
        return
    say(f"{'would write' if dry_run else 'write'} {path}")
    if dry_run:
        return
    if not path.parent.exists():
        files.ensure_dir(path.parent, 0o700)
    files.write_atomic(path, text, mode=mode)
