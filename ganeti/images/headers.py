"""The format of a file by its first bytes, and whether it needs other files. Pure.

A file from outside is checked here before any other program reads it: one that names other files
(a backing file, a data file, parts of a disk), or is encrypted, is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from ganeti import errors

#: Bytes that :func:`find_format` wants; less only when the file is shorter.
HEAD = 128 * 1024
#: How compressed files begin, and the argument list of the program that unpacks them.
COMPRESSIONS: tuple[tuple[bytes, tuple[str, ...]], ...] = (
    (b"\x1f\x8b", ("gzip", "-dc")),
    (b"\xfd7zXZ\x00", ("xz", "-dc", "--memlimit=256MiB")),
    (b"\x28\xb5\x2f\xfd", ("zstd", "-dc", "--memory=128MB")),
)
#: Formats that are refused by their names: name, place, magic.
_OTHERS = (
    ("VHDX", 0, b"vhdxfile"),
    ("VHD", 0, b"conectix"),
    ("VDI", 64, b"\x7f\x10\xda\xbe"),
    ("QED", 0, b"QED\0"),
    ("Parallels", 0, b"WithoutFreeSpace"),
    ("Parallels", 0, b"WithouFreSpacExt"),
    ("bzip2", 0, b"BZh"),
    ("zip", 0, b"PK\x03\x04"),
    ("7z", 0, b"7z\xbc\xaf\x27\x1c"),
)
#: Marks of a disk without a format of its own: of a partition table, or of a file system.
_RAW = (
    (510, b"\x55\xaa"),
    (512, b"EFI PART"),
    (1080, b"\x53\xef"),
    (0, b"XFSB"),
    (65600, b"_BHRfS_M"),
)
_LUKS = b"LUKS\xba\xbe"
_QCOW2_HEAD = struct.Struct(">4sIQIIQII")
#: Bits of incompatible features of qcow2.
_DIRTY, _CORRUPT, _DATA_FILE, _COMPRESSION, _EXTENDED = 1, 2, 4, 8, 16
_QCOW2_EXTENSIONS = {
    0x44415441: "its data are in another file",
    0xE2792ACA: "it needs a backing file",
    0x0537BE77: "it is encrypted",
}
_VMDK_HEAD = struct.Struct("<4sIIQQQQ")
_SECTOR = 512
#: Longest text inside of a VMDK file, in sectors.
_LONGEST_TEXT = 128
_VMDK_KINDS = ("monolithicSparse", "streamOptimized")


class Found(NamedTuple):
    """A format, and the bytes that the disk has by the header; None: as many as the file."""

    format: str
    disk_bytes: int | None


def find_compression(head: bytes) -> tuple[str, ...] | None:
    """The argument list that unpacks a file; None for one that is not compressed."""
    return next((argv for magic, argv in COMPRESSIONS if head.startswith(magic)), None)


def is_archive(head: bytes) -> bool:
    """Whether a file is a tar archive, as an OVA is."""
    return head[257:262] == b"ustar"


def find_format(head: bytes, read: Callable[[int, int], bytes], wanted: str | None = None) -> Found:
    """Format of a file that is neither an archive nor compressed; refuses what must not be opened.

    ``read`` returns bytes from a place on: (offset, length). ``wanted`` is the format that was
    named; only ``raw`` lets a file through that looks like no disk.

    Raises:
        OpPrereqError: another format than that, one that is not supported, or a file that does
            not stand alone; the text says why.
    """
    found = _find(head, read, raw=wanted == "raw")
    if wanted not in (None, found.format):
        raise errors.make_invalid_error(f"the image is {found.format}, not {wanted}")
    return found


def _find(head: bytes, read: Callable[[int, int], bytes], *, raw: bool) -> Found:
    if head.startswith(b"QFI\xfb"):
        return Found("qcow2", _check_qcow2(head))
    if head.startswith(b"KDMV"):
        return Found("vmdk", _check_vmdk(head, read))
    if head.startswith(_LUKS):
        raise make_refusal("it is encrypted (LUKS)")
    if head.startswith((b"COWD", b"# Disk Descriptor")):
        raise make_refusal(
            "it needs other files; merge them into one file: qemu-img convert -O qcow2 OLD NEW"
        )
    for name, place, magic in _OTHERS:
        if head[place : place + len(magic)] == magic:
            raise make_refusal(
                f"its format is {name}, which is not supported; convert or unpack it first"
                " (qemu-img convert -O qcow2 OLD NEW)"
            )
    if not head:
        raise make_refusal("it is empty")
    if not raw and not any(head[at : at + len(magic)] == magic for at, magic in _RAW):
        raise make_refusal(
            "it is neither qcow2, VMDK nor OVA, and has neither a partition table nor a file"
            " system; gnt-image add --format raw accepts it as a raw disk"
        )
    return Found("raw", None)


def make_refusal(reason: str) -> errors.OpPrereqError:
    return errors.make_invalid_error(f"the image is refused: {reason}")


def _check_qcow2(head: bytes) -> int:
    """Bytes of the disk."""
    if len(head) < _SECTOR:
        raise make_refusal("its header is cut off")
    _magic, version, backing, _length, _bits, size, crypt, _l1 = _QCOW2_HEAD.unpack_from(head)
    if version not in (2, 3):
        raise make_refusal(f"its version of qcow2 is {version}; 2 and 3 are supported")
    if backing:
        raise make_refusal(
            "it needs a backing file; merge both into one file: qemu-img convert -O qcow2 OLD NEW"
        )
    if crypt:
        raise make_refusal("it is encrypted")
    features, length = 0, 72
    if version == 3:
        (features,) = struct.unpack_from(">Q", head, 72)
        (length,) = struct.unpack_from(">I", head, 100)
    if features & _DATA_FILE:
        raise make_refusal("its data are in another file")
    if features & _CORRUPT:
        raise make_refusal("it is marked as damaged; repair it: qemu-img check -r all FILE")
    if features & ~(_DIRTY | _CORRUPT | _DATA_FILE | _COMPRESSION | _EXTENDED):
        raise make_refusal(f"it has unknown features of qcow2 ({features:#x})")
    _check_extensions(head, length)
    return int(size)


def _check_extensions(head: bytes, place: int) -> None:
    while place + 8 <= len(head):
        kind, length = struct.unpack_from(">II", head, place)
        if not kind:
            return
        if kind in _QCOW2_EXTENSIONS:
            raise make_refusal(_QCOW2_EXTENSIONS[kind])
        place += 8 + (length + 7) // 8 * 8
    raise make_refusal("the end of its header is missing")


def _check_vmdk(head: bytes, read: Callable[[int, int], bytes]) -> int:
    """Bytes of the disk. QEMU opens the files that the text inside names."""
    if len(head) < _SECTOR:
        raise make_refusal("its header is cut off")
    _magic, version, _flags, capacity, _grain, place, length = _VMDK_HEAD.unpack_from(head)
    if version not in (1, 2, 3):
        raise make_refusal(f"its version of VMDK is {version}; 1 to 3 are supported")
    if not capacity or not place or not 0 < length <= _LONGEST_TEXT:
        raise make_refusal("it is a VMDK without a description")
    text = read(place * _SECTOR, length * _SECTOR).split(b"\0", 1)[0].decode("latin-1")
    values, extents = _read_description(text)
    if values.get("createtype") not in _VMDK_KINDS:
        raise make_refusal(
            f"invalid kind {values.get('createtype', '')[:40]!r} of VMDK; choose from"
            f" {', '.join(_VMDK_KINDS)}"
        )
    if values.get("parentcid", "ffffffff").lower() != "ffffffff" or "parentfilenamehint" in values:
        raise make_refusal("it needs a parent file")
    if len(extents) != 1 or " SPARSE " not in extents[0]:
        raise make_refusal("it needs other files")
    return int(capacity) * _SECTOR


def _read_description(text: str) -> tuple[dict[str, str], list[str]]:
    """Values by their names in small letters, and the lines of extents."""
    values, extents = {}, []
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if line.startswith(("RW ", "RDONLY ", "NOACCESS ")):
            extents.append(line)
        elif equals:
            values[name.strip().lower()] = value.strip().strip('"')
    return values, extents
