"""Guests of 512 bytes: a boot sector that talks on the first serial port.

Registers are those of QEMU's machine ``pc`` (PIIX4): its firmware puts the ACPI block at 0x600,
with the status at 0x600 (bit 8: power button), its enable bits at 0x602 and control at 0x604,
where 0x2000 switches the machine off.
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


_EJECTING = (
    "fb",  # done: sti
    "f4",  # wait: hlt                      until the next tick of the clock
    "ba 10 ae",  # mov dx, 0xae10           PCI hot-plug of ACPI: the first bus
    "66 31 c0",  # xor eax, eax
    "66 ef",  # out dx, eax
    "ba 04 ae",  # mov dx, 0xae04
    "66 ed",  # in eax, dx                  slots that shall go
    "66 85 c0",  # test eax, eax
    "74 ed",  # jz wait
    "ba 08 ae",  # mov dx, 0xae08
    "66 ef",  # out dx, eax                 let them go
    "eb e6",  # jmp wait
)
_EJECTING_PROCESSORS = (
    "fb",  # done: sti
    "ba 00 af",  # mov dx, 0xaf00           hot-plug of processors: ACPI's own way from now on
    "30 c0",  # xor al, al
    "ee",  # out dx, al
    "f4",  # wait: hlt                      until the next tick of the clock
    "b1 01",  # mov cl, 1
    "ba 00 af",  # next: mov dx, 0xaf00
    "66 0f b6 c1",  # movzx eax, cl
    "66 ef",  # out dx, eax                 look at one processor
    "ba 04 af",  # mov dx, 0xaf04
    "ec",  # in al, dx
    "a8 04",  # test al, 4                  shall it go?
    "74 03",  # jz skip
    "b0 08",  # mov al, 8
    "ee",  # out dx, al                     let it go
    "fe c1",  # skip: inc cl
    "80 f9 04",  # cmp cl, 4
    "72 e5",  # jb next
    "eb e0",  # jmp wait
)
_ALPHABET = (
    "fa",  # done: cli
    "0f 01 16 c0 7d",  # lgdt [0x7dc0]
    "0f 20 c0",  # mov eax, cr0
    "0c 01",  # or al, 1
    "0f 22 c0",  # mov cr0, eax
    "ea 2a 7c 08 00",  # jmp 0x08:0x7c2a    32 bits from here on
    "66 b8 10 00",  # mov ax, 0x10
    "8e d8",  # mov ds, ax
    "b3 61",  # mov bl, 'a'
    "bf 00 00 10 00",  # pass: mov edi, 0x100000
    "ff 07",  # page: inc dword [edi]
    "81 c7 00 10 00 00",  # add edi, 0x1000
    "81 ff {end}",  # cmp edi, end
    "72 f0",  # jb page
    "66 ba f8 03",  # mov dx, 0x3f8
    "88 d8",  # mov al, bl
    "ee",  # out dx, al
    "fe c3",  # inc bl
    "80 fb 7b",  # cmp bl, 'z' + 1
    "75 dd",  # jne pass
    "b3 61",  # mov bl, 'a'
    "eb d9",  # jmp pass
)
#: Null, code, data: 4 GiB each; then size and address of that.
_GDT = bytes.fromhex("00" * 8 + "ffff0000009acf00" + "ffff00000092cf00").ljust(32, b"\0")
_GDT += bytes.fromhex("1700a07d0000")


def _sector(*code: str, hello: str = HELLO) -> bytes:
    message = f"{hello}\r\n".encode() + b"\0"
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


def is_deaf(path: Path) -> bool:
    """Whether a disk has a guest that ignores everything."""
    return path.read_bytes()[:512] == _sector(*_START, *_DEAF)


def ejecting_processors(path: Path) -> Path:
    """A disk whose guest lets processors 1 to 3 go when it is asked to."""
    return _disk(path, _sector(*_START, *_EJECTING_PROCESSORS))


def obedient(path: Path) -> Path:
    """A disk whose guest echoes what is typed, and switches off at ``p`` or the power button."""
    return _disk(path, _sector(*_START, *_OBEDIENT))


def floppy(path: Path, hello: str) -> Path:
    """A floppy of 1.44 MB that says something of its own."""
    path.write_bytes(_sector(*_START, *_DEAF, hello=hello).ljust(1474560, b"\0"))
    return path


def cdrom(path: Path, hello: str) -> Path:
    """A CD image that says something of its own; the layout is that of El Torito, no emulation."""
    block = 2048
    image = bytearray(22 * block)
    image[16 * block : 16 * block + 7] = b"\x01CD001\x01"
    record = b"\x00CD001\x01" + b"EL TORITO SPECIFICATION".ljust(64, b"\0")
    image[17 * block : 17 * block + len(record)] = record
    image[17 * block + 0x47 : 17 * block + 0x4B] = (19).to_bytes(4, "little")
    image[18 * block : 18 * block + 7] = b"\xffCD001\x01"
    # Words of the first entry add up to zero; the second: bootable, one sector of 512, at block 20.
    image[19 * block] = 1
    image[19 * block + 30 : 19 * block + 32] = b"\x55\xaa"
    image[19 * block + 32] = 0x88
    image[19 * block + 38] = 1
    image[19 * block + 40] = 20
    checksum = -sum(image[19 * block + i] | image[19 * block + i + 1] << 8 for i in range(0, 32, 2))
    image[19 * block + 28 : 19 * block + 30] = (checksum & 0xFFFF).to_bytes(2, "little")
    sector = _sector(*_START, *_DEAF, hello=hello)
    image[20 * block : 20 * block + len(sector)] = sector
    path.write_bytes(image)
    return path


def ejecting(path: Path) -> Path:
    """A disk whose guest lets go of every PCI device that it is asked for."""
    return _disk(path, _sector(*_START, *_EJECTING))


def alphabet(path: Path, mebibytes: int = 3) -> Path:
    """A disk whose guest says hello and the alphabet, again and again.

    Between two letters it writes to every page of its memory from 1 MiB to ``mebibytes``. Each
    letter comes once, wherever the guest runs: a copy that runs twice says one twice.
    """
    end = (mebibytes << 20).to_bytes(4, "little").hex()
    image = bytearray(_sector(*_START, *(line.format(end=end) for line in _ALPHABET)))
    image[0x1A0 : 0x1A0 + len(_GDT)] = _GDT
    return _disk(path, bytes(image))
