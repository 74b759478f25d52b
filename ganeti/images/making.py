"""From a file of any supported format to the one form in which images are kept.

That form is qcow2 without a backing file, compressed with zstd, which the master writes. A file
from outside is read once, by a confined process; nodes read only what the master wrote.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ganeti import errors
from ganeti.base import jsonio, sparse
from ganeti.base.text import plural
from ganeti.images import confine, headers

MIB = 1024 * 1024
#: Bytes of the largest disk that is accepted.
LARGEST = 64 << 40
#: Bytes of the file system that stay free.
RESERVE = 256 * MIB
_SECTOR = 512
_SECONDS = 6 * 3600.0
#: Exit code of ``qemu-img check`` for clusters that nothing refers to, which harm nobody.
_LEAKS = 3
#: How often a file may be packed: an OVA in a compressed file, or a compressed disk in an OVA.
_LAYERS = 2
#: Most members of an archive.
_MEMBERS = 100
Tell = Callable[[int, int], None]


class Made(NamedTuple):
    """Facts of an image: ``disk_size`` in MiB, ``file_size`` in bytes."""

    format: str
    disk_size: int
    file_size: int
    sha256: str


def node_spec(format: str, path: str) -> str:
    """The words that let programs of QEMU open a file in this format, and no other file."""
    node: dict[str, object] = {
        "driver": format,
        "read-only": True,
        "file": {"driver": "file", "filename": path},
    }
    if format != "raw":
        node["backing"] = None
    return f"json:{jsonio.dumps(node)}"


def make(directory: Path, source: int, wanted: str | None, report: Tell) -> tuple[Path, Made]:
    """Make an image of an open file; returns a file in ``directory``, durable, and the facts.

    ``directory`` belongs to this call alone, and root alone may enter it. Blocks for as long as it
    takes to read and to write all of it. ``report`` gets bytes done and bytes in all, and may
    raise.

    Raises:
        OpPrereqError: the file is refused; the text says why.
        OSError: the file system is full or broken.
    """
    given = wanted
    with contextlib.ExitStack() as opened:
        fd = source
        for layer in range(1, _LAYERS + 2):
            head = os.pread(fd, headers.HEAD, 0)
            compression, archive = headers.find_compression(head), headers.is_archive(head)
            if not compression and not archive:
                break
            if layer > _LAYERS:
                raise headers.make_refusal("it is packed more than twice")
            if archive:
                if wanted not in (None, "ova"):
                    raise errors.make_invalid_error(f"the image is an OVA, not {wanted}")
                given, wanted = "ova", "vmdk"
            target = _create(directory / f"unpacked{layer}")
            opened.callback(os.close, target)
            if compression:
                _decompress(compression, fd, target, _limits(directory), report)
            else:
                _extract_disk(fd, target, report)
            fd = target
        if wanted == "ova":
            raise errors.make_invalid_error("the image is not an OVA, which is a tar archive")
        found = headers.find_format(head, lambda at, size: os.pread(fd, size, at), wanted)
        path, made = _convert(directory, fd, found, report)
        return path, made._replace(format=given or found.format)


def hash_file(fd: int, report: Tell = lambda _done, _size: None) -> str:
    """SHA-256 of an open file; OSError."""
    digest, done, size = hashlib.sha256(), 0, os.fstat(fd).st_size
    while data := os.pread(fd, 4 * MIB, done):
        digest.update(data)
        done += len(data)
        report(done, size)
    return digest.hexdigest()


def find_free(directory: Path) -> int:
    """Bytes that images may still take in the file system of a directory; OSError."""
    found = os.statvfs(directory)
    return max(0, found.f_bavail * found.f_frsize - RESERVE)


def _create(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _limits(directory: Path) -> confine.Limits:
    return confine.Limits(int(_SECONDS), _SECONDS, find_free(directory))


def _decompress(
    compression: tuple[str, ...], fd: int, target: int, limits: confine.Limits, report: Tell
) -> None:
    size = os.fstat(fd).st_size
    os.lseek(fd, 0, os.SEEK_SET)
    confine.run(
        compression,
        limits,
        stdin=fd,
        stdout=target,
        on_progress=lambda _percent: report(os.lseek(fd, 0, os.SEEK_CUR), size),
    )


def _extract_disk(fd: int, target: int, report: Tell) -> None:
    """Copy the only disk of an OVA."""
    with os.fdopen(os.dup(fd), "rb") as stream:
        stream.seek(0)
        try:
            disks, described = [], False
            with tarfile.open(fileobj=stream, mode="r:") as archive:
                for number, member in enumerate(archive):
                    described = described or member.name.endswith(".ovf")
                    if number >= _MEMBERS:
                        raise headers.make_refusal(f"the archive has more than {_MEMBERS} members")
                    if member.name.endswith((".vmdk", ".vmdk.gz")):
                        disks.append(member)
        except (tarfile.TarError, OSError, ValueError, EOFError) as err:
            raise headers.make_refusal(f"the archive cannot be read: {err}") from err
        if not described:
            raise headers.make_refusal("the tar archive has no .ovf file, so it is not an OVA")
        if len(disks) != 1:
            raise headers.make_refusal(
                f"the OVA has {plural(len(disks), 'disk')}, an image has one; unpack it with tar"
                " and add the file that you need"
            )
        disk = disks[0]
        if not disk.isreg() or disk.issparse() or disk.size <= 0:
            raise headers.make_refusal("the disk in the OVA is not a regular file")
        position = 0
        while position < disk.size:
            data = os.pread(fd, min(MIB, disk.size - position), disk.offset_data + position)
            if not data:
                raise headers.make_refusal("the archive is cut off")
            sparse.write(target, position, data)
            position += len(data)
            report(position, disk.size)


def _convert(directory: Path, fd: int, found: headers.Found, report: Tell) -> tuple[Path, Made]:
    size = os.fstat(fd).st_size
    disk_bytes = size if found.disk_bytes is None else found.disk_bytes
    if found.format == "raw" and size % _SECTOR:
        raise headers.make_refusal(f"it is cut off: {size} bytes are not a multiple of {_SECTOR}")
    if not 0 < disk_bytes <= LARGEST:
        raise headers.make_refusal(
            f"its header names {disk_bytes} bytes as the size of the disk; 1 to {LARGEST} are valid"
        )
    # The confined program runs as another user. Others cannot enter the directory.
    os.fchmod(fd, 0o444)
    source = node_spec(found.format, f"/proc/self/fd/{fd}")
    limits = _limits(directory)
    if found.format != "raw":
        _check(source, fd, limits)
    path = directory / "image.qcow2"
    target = _create(path)
    try:
        if os.geteuid() == 0:
            os.fchown(target, confine.UID, confine.GID)
        confine.run(
            [
                "qemu-img",
                "convert",
                "-p",
                "-c",
                "-m",
                "8",
                "-O",
                "qcow2",
                "-o",
                "compression_type=zstd",
                source,
                f"/proc/self/fd/{target}",
            ],
            limits,
            fds=(fd, target),
            on_progress=lambda percent: report(int(disk_bytes * percent / 100), disk_bytes),
        )
        if os.geteuid() == 0:
            os.fchown(target, 0, 0)
        os.fchmod(target, 0o600)
        # The confined program has read the file, so its output is checked, too.
        head = os.pread(target, headers.HEAD, 0)
        written = headers.find_format(head, lambda at, size: os.pread(target, size, at), "qcow2")
        if written.disk_bytes is None or not disk_bytes <= written.disk_bytes <= disk_bytes + MIB:
            raise errors.GenericError("the converted image does not have the size of its source")
        os.fsync(target)
        return path, Made(
            found.format,
            -(-written.disk_bytes // MIB),
            os.fstat(target).st_size,
            hash_file(target),
        )
    finally:
        os.close(target)


def _check(source: str, fd: int, limits: confine.Limits) -> None:
    """Refuse a file with parts that are missing; reading them would give zeros."""
    confine.run(["qemu-img", "check", source], limits, fds=(fd,), allowed=(_LEAKS,))
