"""Backup files of Proxmox VE, in the format VMA: header, then extents of clusters, in any order.

Numbers are big-endian, but the lengths of blobs, which are little-endian. Offsets of blobs count
from the start of the buffer of blobs; 0 means none.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ganeti.foreign.guest import LONGEST_TEXT, MIB, refuse

MAGIC = b"VMA\0"
_EXTENT_MAGIC = b"VMAE"
_HEAD = struct.Struct(">4sI16sq16sIII")
#: Bytes of the header before the blobs, and where its tables are.
HEADER_SIZE = 12288
_NAMES, _DATA, _DEVICES, _ENTRIES, _DEVICE_SIZE = 2044, 3068, 4096, 256, 32
_MD5 = slice(32, 48)
_EXTENT = struct.Struct(">4sHH16s16s")
EXTENT_SIZE, CLUSTERS = 512, 59
BLOCK, CLUSTER = 4096, 65536
_EXTENT_MD5 = slice(24, 40)
#: Most bytes of all devices.
_LARGEST = 64 << 40
#: What a backup of a running guest has beside its disks.
_STATE = "vmstate"
Write = Callable[[int, int, bytes], None]


class Stream(Protocol):
    """What is read once, from its start on; ``read`` returns less only at the end."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Header:
    """The header: ``configs`` are texts by names, ``devices`` name and bytes by number."""

    uuid: bytes
    configs: dict[str, bytes]
    devices: dict[int, tuple[str, int]]


def is_vma(head: bytes) -> bool:
    return head.startswith(MAGIC)


class _Seen:
    """Which clusters of a device were there: one bit each."""

    def __init__(self, length: int) -> None:
        self.count = -(-length // CLUSTER)
        self._bits = bytearray(-(-self.count // 8))

    def note(self, cluster: int) -> bool:
        """Note a cluster; False when it was noted before."""
        place, bit = cluster >> 3, 1 << (cluster & 7)
        if self._bits[place] & bit:
            return False
        self._bits[place] |= bit
        return True

    def count_missing(self) -> int:
        return self.count - int.from_bytes(self._bits, "little").bit_count()


def read_header(what: str, stream: Stream) -> Header:
    """Read the header; the stream stands at the first extent then. OpPrereqError."""
    data = _read(what, stream, HEADER_SIZE, "its header")
    magic, version, uuid, _time, digest, blobs, blobs_size, size = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise refuse(what, "it is not a VMA file")
    if version != 1:
        raise refuse(what, f"its version of VMA is {version}; 1 is supported")
    if not HEADER_SIZE <= size <= LONGEST_TEXT or not (
        blobs >= HEADER_SIZE and blobs + blobs_size <= size
    ):
        raise refuse(what, "the sizes in its header contradict each other")
    data += _read(what, stream, size - HEADER_SIZE, "its header")
    if _hash(data, _MD5) != digest:
        raise refuse(what, "the MD5 of its header is wrong: the file is damaged")
    buffer = data[blobs : blobs + blobs_size]
    configs = {}
    for index in range(_ENTRIES):
        (name,) = struct.unpack_from(">I", data, _NAMES + 4 * index)
        (text,) = struct.unpack_from(">I", data, _DATA + 4 * index)
        if name and text:
            configs[_read_name(what, buffer, name)] = _read_blob(what, buffer, text)
    devices = {}
    for number in range(1, _ENTRIES):
        place = _DEVICES + number * _DEVICE_SIZE
        name, _reserved, length = struct.unpack_from(">IIQ", data, place)
        if name and length:
            devices[number] = (_read_name(what, buffer, name), length)
    if sum(length for _name, length in devices.values()) > _LARGEST:
        raise refuse(what, f"its header names devices of more than {_LARGEST >> 40} TiB")
    names = [name for name, _length in devices.values()]
    if len(set(names)) != len(names):
        raise refuse(what, "two devices have the same name")
    return Header(uuid, configs, devices)


def copy_devices(what: str, stream: Stream, header: Header, write: Write) -> None:
    """Read all extents; ``write`` gets number of the device, place and data of each run of blocks.

    Zeros are not written. One extent is in memory, 3.7 MiB at most.

    Raises:
        OpPrereqError: the file is damaged, or a part of a device is missing.
    """
    seen = {number: _Seen(length) for number, (_name, length) in header.devices.items()}
    while head := stream.read(EXTENT_SIZE):
        _copy_extent(what, stream, head, header, seen, write)
    for number, clusters in seen.items():
        name, length = header.devices[number]
        missing = clusters.count_missing()
        if missing and name != _STATE:
            raise refuse(
                what,
                f"it is cut off: {missing * CLUSTER // MIB} of {length // MIB} MiB of {name} are"
                " missing",
            )


def _copy_extent(
    what: str,
    stream: Stream,
    head: bytes,
    header: Header,
    seen: dict[int, _Seen],
    write: Write,
) -> None:
    if len(head) < EXTENT_SIZE:
        raise refuse(what, "it is cut off within an extent")
    magic, _reserved, count, uuid, digest = _EXTENT.unpack_from(head)
    if magic != _EXTENT_MAGIC or uuid != header.uuid:
        raise refuse(what, "an extent does not begin as those of this file do: it is damaged")
    if _hash(head, _EXTENT_MD5) != digest:
        raise refuse(what, "the MD5 of an extent is wrong: the file is damaged")
    infos = struct.unpack_from(f">{CLUSTERS}Q", head, _EXTENT.size)
    if sum((info >> 48).bit_count() for info in infos if info >> 32 & 0xFF) != count:
        raise refuse(what, "an extent has another number of blocks than it says: it is damaged")
    for info in infos:
        mask, number, cluster = info >> 48, info >> 32 & 0xFF, info & 0xFFFFFFFF
        if not number:
            continue
        if number not in seen or cluster >= seen[number].count:
            raise refuse(
                what, f"an extent names cluster {cluster} of device {number}, which does not exist"
            )
        if not seen[number].note(cluster):
            raise refuse(what, f"cluster {cluster} of device {number} is there twice")
        data = _read(what, stream, mask.bit_count() * BLOCK, "an extent")
        length, place, begin = header.devices[number][1], cluster * CLUSTER, 0
        for block in range(16):
            if mask >> block & 1:
                at = place + block * BLOCK
                piece = data[begin : begin + BLOCK][: max(0, length - at)]
                begin += BLOCK
                if piece:
                    write(number, at, piece)


def _read(what: str, stream: Stream, size: int, part: str) -> bytes:
    data = stream.read(size) if size else b""
    if len(data) < size:
        raise refuse(what, f"it is cut off within {part}")
    return data


def _read_blob(what: str, buffer: bytes, place: int) -> bytes:
    if place + 2 > len(buffer):
        raise refuse(what, "its header names a blob that lies outside of it")
    (size,) = struct.unpack_from("<H", buffer, place)
    data = buffer[place + 2 : place + 2 + size]
    if len(data) < size:
        raise refuse(what, "its header names a blob that lies outside of it")
    return data


def _read_name(what: str, buffer: bytes, place: int) -> str:
    return _read_blob(what, buffer, place).rstrip(b"\0").decode("utf-8", "replace")


def _hash(data: bytes, digest: slice) -> bytes:
    """MD5 of a part with the place of its own MD5 as zeros."""
    whole = data[: digest.start] + bytes(digest.stop - digest.start) + data[digest.stop :]
    return hashlib.md5(whole, usedforsecurity=False).digest()
