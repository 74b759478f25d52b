"""Guests of 512 bytes: a boot sector that talks on the first serial port.

Registers are those of QEMU's machine ``pc`` (PIIX4): its firmware puts the ACPI block at 0x600, with
the status at 0x600 (bit 8: power button), its enable bits at 0x602 and control at 0x604, where
0x2000 switches the machine off.
"""

from __future__ import annotations

from pathlib import Path

HELLO = "guest is up"

_START = (
    "31 c0",  # xor ax, ax
    "8e d8",  # mov ds, ax
    "8e d0",  # mov ss, ax
    "bc 00 7c",  # mov sp, 0x7c00
    "be 00 7d",  # mov si, message
    "ba f8 03",  # mov dx, 0x3f8            serial port
    "ac",  # next: lodsb
    "84 c0",  # test al, al
    "74 03",  # jz done
    "ee",  # out dx, al
    "eb f8",  # jmp next
)
_DEAF = (
    "fa",  # done: cli
    "f4",  # hlt
    "eb fd",  # jmp -1
)
_OBEDIENT = (
    "ba 02 06",  # done: mov dx, 0x602
    "b8 00 01",  # mov ax, 0x100            power button on
    "ef",  # out dx, ax
    "fb",  # sti
    "f4",  # wait: hlt                      until the next tick of the clock
    "ba 00 06",  # mov dx, 0x600
    "ed",  # in ax, dx
    "f6 c4 01",  # test ah, 1               pressed?
    "75 13",  # jnz off
    "ba fd 03",  # mov dx, 0x3fd
    "ec",  # in al, dx
    "a8 01",  # test al, 1                  anything typed?
    "74 ee",  # jz wait
    "ba f8 03",  # mov dx, 0x3f8
    "ec",  # in al, dx
    "3c 70",  # cmp al, 'p'
    "74 03",  # je off
    "ee",  # out dx, al                     echo
    "eb e3",  # jmp wait
    "ba 04 06",  # off: mov dx, 0x604
    "b8 00 20",  # mov ax, 0x2000
    "ef",  # out dx, ax
    "eb da",  # jmp wait
)


def _sector(*code: str) -> bytes:
    message = f"{HELLO}\r\n".encode() + b"\0"
    image = bytes.fromhex(" ".join(code)).ljust(256, b"\0") + message
    return image.ljust(510, b"\0") + b"\x55\xaa"


def _disk(path: Path, sector: bytes) -> Path:
    path.write_bytes(sector)
    with path.open("r+b") as stream:
        stream.truncate(1 << 20)
    return path


def deaf(path: Path) -> Path:
    """A disk whose guest says hello and then ignores everything."""
    return _disk(path, _sector(*_START, *_DEAF))


def obedient(path: Path) -> Path:
    """A disk whose guest echoes what is typed, and switches off at ``p`` or the power button."""
    return _disk(path, _sector(*_START, *_OBEDIENT))
