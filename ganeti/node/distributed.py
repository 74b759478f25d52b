"""The files that the cluster distributes to its nodes: the only ones a master may replace.

None of them is one by which the administrator of a node bounds what a master may do there: the list
of directories for file disks, hooks, scripts, OS definitions, providers of storage.

On the wire a file has the name it has on a node without a root of its own
(``/var/lib/ganeti/config.data``), since below ``GANETI_ROOTDIR`` every node has another root.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ganeti import errors
from ganeti.base import files
from ganeti.model import ssconf_keys
from ganeti.paths import Paths


@dataclass(frozen=True)
class Distributed:
    """One file: where it is on this node, and whether it may be readable by everybody."""

    path: Path
    secret: bool


@functools.lru_cache(maxsize=8)
def table(paths: Paths) -> Mapping[str, Distributed]:
    """Name on the wire -> file, for every file that may be uploaded."""
    secret = (
        paths.ca_key,
        paths.domain_secret,
        paths.hmac_key,
        paths.rapi_cert,
        paths.rapi_users,
        paths.rapi_tokens,
        paths.rapi_login,
        paths.spice_cert,
        paths.ssh_public_keys,
        paths.conf / "vnc-cluster-password",
    )
    public = (
        paths.ca_cert,
        paths.known_hosts,
        paths.spice_ca_cert,
    )
    return {
        **{_wire_name(path, paths): Distributed(path, True) for path in secret},
        **{_wire_name(path, paths): Distributed(path, False) for path in public},
    }


@functools.lru_cache(maxsize=8)
def _ssconf_files(paths: Paths) -> Mapping[str, Path]:
    return {_wire_name(path, paths): path for path in map(paths.ssconf, ssconf_keys.KEYS)}


def _wire_name(path: Path, paths: Paths) -> str:
    return f"/{path.relative_to(paths.root)}"


def find(name: str, paths: Paths) -> Distributed:
    """The file of a name on the wire; names are compared as they are, ``..`` is not resolved.

    Raises:
        FileStoragePathError: the cluster distributes no such file, or its directory leads
            somewhere else.
    """
    found = table(paths).get(name)
    if found is None:
        raise errors.FileStoragePathError(
            f"{name[:200]!r} is not one of the files that the cluster distributes"
        )
    # Directories that a daemon with fewer rights may write to must not lead out of the tree.
    parent = found.path.parent
    if parent != paths.data and parent.is_symlink():
        raise errors.FileStoragePathError(
            f"{found.path} is not replaced: {parent} is a symbolic link"
        )
    return found


def limit_mode(mode: int, file: Distributed) -> int:
    """Permission bits for a distributed file; secrets lose those of "others".

    Raises:
        ParameterError: special bits, or writable by everybody.
    """
    bits = stat.S_IMODE(mode)
    if bits & (stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX | stat.S_IWOTH):
        raise errors.ParameterError(
            f"{file.path} cannot get mode {bits:04o}: special bits and writing by everybody"
            " are not allowed"
        )
    return bits & ~stat.S_IRWXO if file.secret else bits


def checksums(names: list[str], paths: Paths) -> dict[str, str]:
    """SHA1 of the content by name, without files that do not exist.

    Raises:
        FileStoragePathError: a name is neither that of a distributed file nor of an ssconf file.
    """
    result: dict[str, str] = {}
    public = _ssconf_files(paths)
    for name in names:
        path = public[name] if name in public else find(name, paths).path
        try:
            with path.open("rb") as stream:
                result[name] = hashlib.file_digest(stream, "sha1").hexdigest()
        except FileNotFoundError:
            continue
    return result


def replace(file: Distributed, data: str, *, mode: int, uid: int, gid: int) -> None:
    """Write the file atomically and durably; a symbolic link in its place is replaced itself."""
    files.ensure_dir(file.path.parent)
    files.write_atomic(file.path, data, mode=mode, uid=uid, gid=gid)


def stamp(file: Distributed, atime: float, mtime: float) -> None:
    """Set the times of the file, in seconds since 1970."""
    os.utime(file.path, (atime, mtime), follow_symlinks=False)
