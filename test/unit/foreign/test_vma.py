"""Backup files of Proxmox VE; the files are made after the description of their format."""

from __future__ import annotations

import io
import struct

import pytest
from foreign_guests import CONFIG, make_content, make_vma
from hypothesis import given, settings
from hypothesis import strategies as st

from ganeti import errors
from ganeti.foreign import vma


def extract(data: bytes) -> tuple[vma.Header, dict[str, bytes]]:
    """Header, and the content of each device."""
    stream = io.BytesIO(data)
    header = vma.read_header("a.vma", stream)
    found = {number: bytearray(size) for number, (_name, size) in header.devices.items()}

    def write(number: int, place: int, piece: bytes) -> None:
        found[number][place : place + len(piece)] = piece

    vma.copy_devices("a.vma", stream, header, write)
    return header, {header.devices[number][0]: bytes(data) for number, data in found.items()}


def check_refused(data: bytes, text: str) -> None:
    with pytest.raises(errors.OpPrereqError, match=text):
        extract(data)


DEVICES = {"drive-scsi0": make_content(9 << 20, 1), "drive-scsi1": make_content(5 << 20, 2)}
FILE = make_vma(DEVICES, extra={"qemu-server.fw": b"[OPTIONS]\n"})
FIRST = FILE.index(b"VMAE")


def test_devices_and_texts() -> None:
    header, found = extract(FILE)
    assert header.configs == {"qemu-server.conf": CONFIG.encode(), "qemu-server.fw": b"[OPTIONS]\n"}
    assert found == DEVICES


@given(
    st.lists(
        st.lists(st.sampled_from([b"", b"x", b"y" * 4096, bytes(4096)]), max_size=40),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 5000),
)
@settings(deadline=None, max_examples=30)
def test_any_content_is_read_back(blocks: list[list[bytes]], rest: int) -> None:
    devices = {
        f"drive-{number}": b"".join(block.ljust(4096, b"\0") for block in each) + b"z" * rest
        for number, each in enumerate(blocks)
    }
    assert extract(make_vma(devices))[1] == devices


@given(st.integers(0, len(FILE) - 1))
@settings(deadline=None, max_examples=60)
def test_every_shorter_file_is_refused(size: int) -> None:
    check_refused(FILE[:size], "cut off|not a VMA")


@given(st.integers(0, FIRST + 511), st.integers(1, 255))
@settings(deadline=None, max_examples=60)
def test_every_change_of_a_header_is_noticed(place: int, flip: int) -> None:
    data = bytearray(FILE)
    data[place] ^= flip
    check_refused(bytes(data), "a.vma: ")


def change_header(place: int, form: str, value: int) -> bytes:
    """The header of the file with a right MD5 in spite of a change."""
    data = bytearray(FILE)
    struct.pack_into(form, data, place, value)
    data[32:48] = vma._hash(bytes(data[:FIRST]), slice(32, 48))
    return bytes(data)


def change_extent(place: int, form: str, value: int) -> bytes:
    data = bytearray(FILE)
    struct.pack_into(form, data, FIRST + place, value)
    head = bytes(data[FIRST : FIRST + 512])
    data[FIRST + 24 : FIRST + 40] = vma._hash(head, slice(24, 40))
    return bytes(data)


def test_header_that_lies_is_refused() -> None:
    check_refused(change_header(4, ">I", 2), "version of VMA is 2")
    check_refused(change_header(56, ">I", 1 << 31), "contradict each other")
    check_refused(change_header(48, ">I", 0), "contradict each other")
    check_refused(change_header(2044, ">I", 60000), "lies outside of it")
    check_refused(change_header(4096 + 32 + 8, ">Q", 1 << 60), "devices of more than 64 TiB")
    check_refused(change_header(4096 + 32 + 8, ">Q", 64 << 20), "of 64 MiB of drive-scsi0 are")


def test_extent_that_lies_is_refused() -> None:
    check_refused(change_extent(6, ">H", 3), "another number of blocks")
    (info,) = struct.unpack_from(">Q", FILE, FIRST + 40)
    check_refused(change_extent(40, ">Q", info | 0xFFFF), "cluster 65535 of device 1, which does")
    check_refused(change_extent(40, ">Q", info + (7 << 32)), "of device 8, which does not exist")
    check_refused(change_extent(40 + 16, ">Q", info & 0xFFFFFFFFFF), "is there twice")
