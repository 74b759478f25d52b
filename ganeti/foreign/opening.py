"""Files of guests on this server: their kind is found, and the content of their disks copied.

A description can only name files beside it, or in the directory that the user names: a hostile one
could put any file of the server into a guest otherwise. Links are not followed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tarfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ganeti import errors
from ganeti.base import sparse
from ganeti.foreign import libvirt, ovf, qemu_server, vma, xml_tree
from ganeti.foreign.guest import LONGEST_TEXT, MIB, ForeignDisk, ForeignGuest, refuse
from ganeti.images import confine, headers

#: lzop is compressed, too, but not a form of images.
_LZOP = (b"\x89LZO\0\r\n\x1a\n", ("lzop", "-dc"))
_SECONDS = 6 * 3600.0
#: Most members of an OVA.
_MEMBERS = 100
#: Bytes that are read of compressed files to see what is inside.
_PEEK = 512


class Opened(ABC):
    """A file, or several, with a guest; close it afterwards."""

    #: what it is, for people
    kind: str
    guest: ForeignGuest
    #: bytes of the content of each disk
    sizes: list[int]
    #: closes the files
    closing: contextlib.ExitStack

    @abstractmethod
    def formats(self) -> list[str | None]:
        """Format of each copied disk, as far as it must be named."""

    @abstractmethod
    def copy(self, targets: Sequence[int]) -> None:
        """Copy the content of each disk to an empty open file; OpPrereqError, OSError."""

    def close(self) -> None:
        """Close all files."""
        self.closing.close()


def open_guest(path: Path, directory: Path | None = None) -> Opened:
    """Find out what a file is, and read what it says; reads no disk.

    ``directory`` has the files of the disks; by default that of the file itself.

    Raises:
        OpPrereqError: it is refused, or something of it is missing; the text says what and why.
    """
    with contextlib.ExitStack() as closing:
        try:
            opened = _find(path, directory or path.parent, closing)
        except OSError as err:
            raise refuse(str(path), f"it cannot be read: {err.strerror}") from err
        opened.closing = closing.pop_all()
    return opened


def _find(path: Path, directory: Path, closing: contextlib.ExitStack) -> Opened:
    fd = _open(path)
    closing.callback(os.close, fd)
    head = os.pread(fd, headers.HEAD, 0)
    if vma.is_vma(head):
        return _Backup(path, fd, None)
    compression = _find_compression(head)
    if compression:
        with _decompressing(path, fd, compression) as stream:
            inside = stream.read(_PEEK)
        if not vma.is_vma(inside):
            raise refuse(str(path), "it is compressed; unpack it and import what is inside")
        return _Backup(path, fd, compression)
    if headers.is_archive(head):
        return _open_archive(path, fd)
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return _open_description(path, fd, directory, closing)
    guest = ForeignGuest(disks=(ForeignDisk("0", path.name),))
    return _Files("disk file", path, guest, [_Part(fd, path.name)])


def _open(path: Path) -> int:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as err:
        raise errors.make_invalid_error(f"Cannot read '{path}': {err.strerror}") from err
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise errors.make_invalid_error(f"'{path}' is not a regular file")
    return fd


def _find_compression(head: bytes) -> tuple[str, ...] | None:
    magic, argv = _LZOP
    return argv if head.startswith(magic) else headers.find_compression(head)


# files of disks ------------------------------------------------------------------------------


@dataclass
class _Part:
    """A disk in a file, or in a part of one."""

    fd: int
    name: str
    offset: int = 0
    length: int | None = None
    checksum: ovf.Checksum | None = None

    @property
    def size(self) -> int:
        return os.fstat(self.fd).st_size if self.length is None else self.length

    def read(self, at: int, size: int) -> bytes:
        return os.pread(self.fd, max(0, min(size, self.size - at)), self.offset + at)


@dataclass
class _Files(Opened):
    """Disks as files, beside a description or in an archive."""

    kind: str
    path: Path
    guest: ForeignGuest
    parts: list[_Part]
    sizes: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = [
            _measure(str(self.path), disk, part)
            for disk, part in zip(self.guest.disks, self.parts, strict=True)
        ]

    def formats(self) -> list[str | None]:
        return [disk.format for disk in self.guest.disks]

    def copy(self, targets: Sequence[int]) -> None:
        for part, target in zip(self.parts, targets, strict=True):
            _copy_part(str(self.path), part, target)


def _measure(what: str, disk: ForeignDisk, part: _Part) -> int:
    """Bytes of a disk by the header of its file; refuses a file that does not stand alone."""
    head = part.read(0, headers.HEAD)
    if _find_compression(head):
        if disk.size is None:
            raise refuse(what, f"{part.name} is compressed; unpack it first")
        return disk.size
    try:
        found = headers.find_format(head, part.read, disk.format)
    except errors.OpPrereqError as err:
        raise errors.make_invalid_error(
            f"{what}: disk {disk.label} ({part.name}): {errors.text(err)}"
        ) from err
    return part.size if found.disk_bytes is None else found.disk_bytes


def _copy_part(what: str, part: _Part, target: int) -> None:
    digest = hashlib.new(part.checksum.algorithm) if part.checksum else None
    position, size = 0, part.size
    if digest is None and part.offset == 0 and part.length is None:
        for piece in sparse.pieces(part.fd, size):
            if piece.data is not None:
                sparse.write(target, position, piece.data)
            position += piece.size
    while position < size:
        data = part.read(position, MIB)
        if not data:
            raise refuse(what, f"{part.name} is cut off")
        if digest is not None:
            digest.update(data)
        sparse.write(target, position, data)
        position += len(data)
    os.ftruncate(target, size)
    if digest is not None and part.checksum and digest.hexdigest() != part.checksum.value:
        raise refuse(
            what,
            f"the {part.checksum.algorithm.upper()} of {part.name} is {digest.hexdigest()}, but"
            f" {part.checksum.value} in the manifest: the file is damaged",
        )


def _open_description(
    path: Path, fd: int, directory: Path, closing: contextlib.ExitStack
) -> Opened:
    what, data = str(path), _read_text(str(path), _Part(fd, path.name))
    root = xml_tree.parse(what, data)
    checksums: dict[str, ovf.Checksum] = {}
    if ovf.is_ovf(root):
        kind, guest = "OVF", ovf.read(what, root)
        manifest = path.with_suffix(".mf")
        if manifest.exists():
            opened = _open(manifest)
            try:
                text = _read_text(str(manifest), _Part(opened, manifest.name))
            finally:
                os.close(opened)
            checksums = ovf.read_manifest(str(manifest), text)
            _check_text(what, path.name, data, checksums)
    elif libvirt.is_libvirt(root):
        kind, guest = "libvirt", libvirt.read(what, root)
    else:
        raise refuse(what, f"the XML begins with <{root.name[:40]}>, not <domain> or <Envelope>")
    _check_has_disks(what, guest)
    parts = []
    for disk in guest.disks:
        opened = _open_disk(what, disk, directory)
        closing.callback(os.close, opened)
        parts.append(_Part(opened, disk.file, checksum=checksums.get(disk.file)))
    return _Files(kind, path, guest, parts)


def _check_has_disks(what: str, guest: ForeignGuest) -> None:
    if not guest.disks:
        raise refuse(what, "its guest has no disk, so there is nothing to import")


def _open_disk(what: str, disk: ForeignDisk, directory: Path) -> int:
    path = directory / disk.file
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError as err:
        raise refuse(
            what,
            f"the file {disk.file} of disk {disk.label} is missing in {directory}; copy it there or"
            " name its directory with --disk-dir",
        ) from err
    except OSError as err:
        reason = "it is a link" if path.is_symlink() else err.strerror
        raise refuse(what, f"{path} of disk {disk.label} cannot be read: {reason}") from err
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise refuse(what, f"{path} of disk {disk.label} is not a regular file")
    return fd


def _read_text(what: str, part: _Part) -> bytes:
    if part.size > LONGEST_TEXT:
        raise refuse(what, f"{part.name} has more than {LONGEST_TEXT >> 20} MiB")
    data = part.read(0, LONGEST_TEXT)
    if len(data) < part.size:
        raise refuse(what, f"{part.name} is cut off")
    return data


def _check_text(what: str, name: str, data: bytes, checksums: dict[str, ovf.Checksum]) -> None:
    expected = checksums.get(name)
    if expected and hashlib.new(expected.algorithm, data).hexdigest() != expected.value:
        raise refuse(what, f"the checksum of {name} is not that in the manifest")


# archives ------------------------------------------------------------------------------------


def _open_archive(path: Path, fd: int) -> Opened:
    what, members = str(path), _read_members(path, fd)
    descriptions = [name for name in members if name.endswith(".ovf")]
    if len(descriptions) != 1:
        raise refuse(
            what,
            f"the archive has {len(descriptions)} .ovf files, an OVA of one guest has one",
        )
    text = _read_text(what, members[descriptions[0]])
    guest = ovf.read(what, _parse_ovf(what, text))
    checksums: dict[str, ovf.Checksum] = {}
    for name in members:
        if name.endswith(".mf"):
            checksums = ovf.read_manifest(what, _read_text(what, members[name]))
    _check_text(what, descriptions[0], text, checksums)
    _check_has_disks(what, guest)
    parts = []
    for disk in guest.disks:
        if disk.file not in members:
            raise refuse(
                what, f"the file {disk.file} of disk {disk.label} is missing in the archive"
            )
        part = members[disk.file]
        part.checksum = checksums.get(disk.file)
        parts.append(part)
    return _Files("OVA", path, guest, parts)


def _parse_ovf(what: str, text: bytes) -> xml_tree.Element:
    root = xml_tree.parse(what, text)
    if not ovf.is_ovf(root):
        raise refuse(what, f"its .ovf begins with <{root.name[:40]}>, not <Envelope>")
    return root


def _read_members(path: Path, fd: int) -> dict[str, _Part]:
    what, result, size = str(path), {}, os.fstat(fd).st_size
    with os.fdopen(os.dup(fd), "rb") as stream:
        stream.seek(0)
        try:
            with tarfile.open(fileobj=stream, mode="r:") as archive:
                for number, member in enumerate(archive):
                    if number >= _MEMBERS:
                        raise refuse(what, f"the archive has more than {_MEMBERS} members")
                    name = member.name.removeprefix("./")
                    if member.isdir():
                        continue
                    if not member.isreg() or member.issparse():
                        raise refuse(what, f"'{name[:80]}' in the archive is not a regular file")
                    if name in result:
                        raise refuse(what, f"'{name[:80]}' is in the archive twice")
                    if member.offset_data + member.size > size:
                        raise refuse(what, f"it is cut off within {name[:80]}")
                    result[name] = _Part(fd, name, member.offset_data, member.size)
        except (tarfile.TarError, ValueError, EOFError) as err:
            raise refuse(what, f"the archive cannot be read: {err}") from err
    return result


# backups of Proxmox --------------------------------------------------------------------------


class _Backup(Opened):
    kind = "Proxmox backup"

    def __init__(self, path: Path, fd: int, compression: tuple[str, ...] | None) -> None:
        self._path, self._fd, self._compression = path, fd, compression
        with self._stream() as stream:
            header = vma.read_header(str(path), stream)
        config = header.configs.get("qemu-server.conf")
        if config is None:
            raise refuse(str(path), "it has no qemu-server.conf, so it does not describe a guest")
        by_name = dict(header.devices.values())
        self.guest = qemu_server.read(str(path), config.decode("utf-8", "replace"), by_name)
        _check_has_disks(str(path), self.guest)
        self.sizes = [by_name[disk.file] for disk in self.guest.disks]

    def formats(self) -> list[str | None]:
        return ["raw"] * len(self.sizes)

    def copy(self, targets: Sequence[int]) -> None:
        what = str(self._path)
        with self._stream() as stream:
            header = vma.read_header(what, stream)
            by_file = {disk.file: fd for disk, fd in zip(self.guest.disks, targets, strict=True)}
            fds = {
                number: by_file[name]
                for number, (name, _size) in header.devices.items()
                if name in by_file
            }

            def write(number: int, place: int, data: bytes) -> None:
                if number in fds:
                    os.pwrite(fds[number], data, place)

            vma.copy_devices(what, stream, header, write)
        for size, fd in zip(self.sizes, targets, strict=True):
            os.ftruncate(fd, size)

    @contextlib.contextmanager
    def _stream(self) -> Iterator[BinaryIO]:
        if self._compression:
            with _decompressing(self._path, self._fd, self._compression) as stream:
                yield stream
            return
        with os.fdopen(os.dup(self._fd), "rb") as stream:
            stream.seek(0)
            yield stream


@contextlib.contextmanager
def _decompressing(path: Path, fd: int, argv: tuple[str, ...]) -> Iterator[BinaryIO]:
    """What a confined program unpacks; its error comes first when it ended too early."""
    os.lseek(fd, 0, os.SEEK_SET)
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    problems: list[errors.GanetiError] = []
    limits = confine.Limits(int(_SECONDS), _SECONDS, LONGEST_TEXT)

    def unpack() -> None:
        try:
            confine.run(argv, limits, stdin=fd, stdout=write_end)
        except errors.GanetiError as err:
            problems.append(err)
        finally:
            os.close(write_end)

    thread = threading.Thread(target=unpack, name="unpack")
    thread.start()
    try:
        with os.fdopen(read_end, "rb") as stream:
            try:
                yield stream
            except errors.OpPrereqError:
                # The reader saw the end only after the error was noted.
                if problems:
                    raise _explain(path, problems[0]) from None
                raise
            if problems:
                raise _explain(path, problems[0])
    finally:
        thread.join()


def _explain(path: Path, error: errors.GanetiError) -> errors.OpPrereqError:
    text = errors.text(error).removeprefix("the image is refused: ")
    return refuse(str(path), f"it cannot be unpacked, it may be cut off: {text}")
