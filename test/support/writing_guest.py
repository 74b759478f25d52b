"""A guest of one sector that numbers what it writes, made of the source below with GNU as.

It fills some sectors of its disks with a number, then says the number on the serial line, and
goes on with the next one. Numbers go to 256 places that follow each other in a fixed order. So the
disk shows which number came last and whether any before it is missing. A guest that is started
again finds the last number on its first disk, and repeats it.

            .intel_syntax noprefix
            .code16
            .set LBA, packet + 8
    start:  xor ax, ax
            mov ds, ax
            mov es, ax
            mov ss, ax
            mov sp, 0x7c00
            sti
            cld
            mov al, [0x7dfb]        # sectors of a number
            mov [packet + 2], al
            mov si, offset hello
            call puts
            xor ebp, ebp            # the largest number on the first disk
            xor ebx, ebx
    scan:   mov eax, ebx
            mov ah, 0x42
            mov dl, 0x80
            call disk
            mov eax, [0x8000]
            cmp eax, ebp
            jbe 1f
            mov ebp, eax
    1:      inc bl
            jnz scan
            test ebp, ebp
            jnz next
            inc ebp
    next:   mov di, 0x8000          # fill them with it
            movzx cx, byte ptr [0x7dfb]
            shl cx, 7
            mov eax, ebp
            rep stosd
            mov dl, 0x80
    each:   imul bx, bp, 77         # its slot
            mov ah, 0x43
            call disk
            inc dl
            mov al, dl
            sub al, 0x80
            cmp al, [0x7dfc]        # how many disks are written to
            jb each
            mov cx, 8               # it is on all disks now: say so
    digit:  rol ebp, 4
            mov ax, bp
            and al, 15
            cmp al, 10
            sbb al, 0x69
            das
            call putc
            loop digit
            mov si, offset line
            call puts
            inc ebp
            dec byte ptr [left]
            jnz next
            mov al, [0x7dfd]        # numbers in a tick
            mov [left], al
            mov ax, [0x46c]
    2:      hlt
            cmp ax, [0x46c]
            je 2b
            jmp next
    disk:   pusha                   # ah: 0x42 read, 0x43 write the sector of slot bl
            mov cx, ax
            movzx eax, bl
            shl eax, 7
            add eax, 64
            mov [LBA], eax
            mov ax, cx
            mov al, 0
            mov si, offset packet
            int 0x13
            jc fail
            popa
            ret
    fail:   mov al, '!'
            call putc
            hlt
            jmp fail
    puts:   lodsb
            test al, al
            jz 3f
            call putc
            jmp puts
    3:      ret
    putc:   pusha
            mov ah, al
            mov dx, 0x3fd
    4:      in al, dx
            test al, 0x20
            jz 4b
            mov dl, 0xf8
            mov al, ah
            out dx, al
            popa
            ret
    packet: .byte 16, 0, 1, 0
            .word 0x8000, 0
            .quad 0
    left:   .byte 1
    hello:  .ascii "guest is up"
    line:   .asciz "\r\n"
"""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path

_CODE = bytes.fromhex(
    "31c08ed88ec08ed0bc007cfbfca0fb7da2e37cbef27ce8ab006631ed6631db6689d8b442b280e8730066a1"
    "00806639e876036689c5fec375e66685ed75026645bf00800fb60efb7dc1e1076689e866f3abb2806bdd4d"
    "b443e84100fec288d02c803a06fc7d72ecb9080066c1c50489e8240f3c0a1c692fe85500e2eebefd7ce842"
    "006645fe0ef17c75b6a0fd7da2f17ca16c04f43b066c0474f9eba46089c1660fb6c366c1e0076683c04066"
    "a3e97c89c8b000bee17ccd13720261c3b021e80e00f4ebf8ac84c07405e80300ebf6c36088c4bafd03eca8"
    "2074fbb2f888e0ee61c3100001000080000000000000000000000167756573742069732075700d0a00"
)
_SECTORS, _DISKS, _RATE = 0x1FB, 0x1FC, 0x1FD
_SLOTS, _STEP, _FIRST, _APART, _SECTOR = 256, 77, 64, 128, 512
#: MiB that a disk must have.
SIZE = 17


def install(
    path: Path, rate: int = 1, disks: int = 1, *, sectors: int = 1, full: bool = False
) -> Path:
    """Put the guest on a disk: it writes ``rate`` (1 to 255) numbers in each of 18 ticks a second.

    Numbers that follow each other are far apart, so that nothing can copy them together. They are
    written to the first ``disks`` disks of the guest, ``sectors`` (1 to 64) of each. ``full``: the
    disk has no holes.
    """
    sector = bytearray(_CODE.ljust(_SECTOR - 2, b"\0") + b"\x55\xaa")
    sector[_SECTORS], sector[_DISKS], sector[_RATE] = sectors, disks, rate
    with path.open("r+b" if path.exists() else "wb") as disk:
        disk.truncate(max(SIZE << 20, path.stat().st_size))
        if full:
            for _ in range(path.stat().st_size >> 20):
                disk.write(os.urandom(1 << 20))
            for slot in range(_SLOTS):
                disk.seek((_FIRST + slot * _APART) * _SECTOR)
                disk.write(bytes(_SECTOR))
            disk.seek(0)
        disk.write(sector)
    return path


def count_boots(serial: str) -> int:
    """How often the guest was started."""
    return serial.count("guest is up")


def list_numbers(serial: str) -> list[int]:
    """The numbers on a serial line; one that is cut short does not count."""
    assert "!" not in serial, "a write of the guest failed"
    return [int(word, 16) for word in re.findall(r"\b([0-9A-F]{8})\r?\n", serial)]


def count_cut_lines(serial: str) -> int:
    """How many numbers are not on a serial line as a whole.

    A guest that moves while it says a number says the rest of it on the line of its new node.
    """
    ended = re.split(r"\r?\n", serial)[:-1]
    return sum(not re.fullmatch(r"[0-9A-F]{8}|.*guest is up", line) for line in ended)


def check_disk(path: Path) -> int:
    """The last number on a disk; fails when one before it is missing."""
    found = {}
    with path.open("rb") as disk:
        for slot in range(_SLOTS):
            disk.seek((_FIRST + slot * _APART) * _SECTOR)
            words = set(struct.unpack("<128I", disk.read(_SECTOR)))
            assert len(words) == 1, f"a sector is torn: {sorted(words)[:4]}"
            found[slot] = words.pop()
    last = max(found.values())
    wanted = dict.fromkeys(range(_SLOTS), 0)
    for number in range(max(1, last - _SLOTS + 1), last + 1):
        wanted[number * _STEP % _SLOTS] = number
    wrong = {slot: (found[slot], wanted[slot]) for slot in found if found[slot] != wanted[slot]}
    assert not wrong, f"(found, written) of {len(wrong)} places: {list(wrong.values())[:4]}"
    return last
