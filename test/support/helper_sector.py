"""A helper guest that fits into one sector: made of the source below with GNU as.

It prints a text, copies the first sector of its second disk (the package) to its third (the first
one of the instance), prints another text, and powers off. That takes less than a second.

    start:  xor ax, ax
            mov ds, ax
            mov es, ax
            mov ss, ax
            mov sp, 0x7c00
            mov si, 0x7d00          # what is printed first
            call print
            test byte ptr [0x7cf0], 1
            jz told
            mov si, offset packet   # read from the second disk, write to the third
            mov ah, 0x42
            mov dl, 0x81
            int 0x13
            jc told
            mov si, offset packet
            mov ax, 0x4300
            mov dl, 0x82
            int 0x13
            jc told
            mov si, 0x7d80          # what is printed last
            call print
    told:   test byte ptr [0x7cf0], 2
            jnz halt
            mov dx, 0x604           # power off: sleep enable, type 0
            mov ax, 0x2000
            out dx, ax
    halt:   hlt
            jmp halt
    print:  lodsb
            test al, al
            jz done
            mov ah, al
    wait:   mov dx, 0x3fd
            in al, dx
            test al, 0x20
            jz wait
            mov dx, 0x3f8
            mov al, ah
            out dx, al
            jmp print
    done:   ret
    packet: .byte 16, 0, 1, 0
            .word 0x8000, 0
            .quad 0
"""

from __future__ import annotations

_CODE = bytes.fromhex(
    "31c08ed88ec08ed0bc007cbe007de83500f606f07c01741dbe5e7cb442b281cd137212be5e7cb80043b282cd13"
    "7206be807de81100f606f07c027507ba0406b80020eff4ebfdac84c0741288c4bafd03eca82074f8baf80388e0"
    "eeebe9c310000100008000000000000000000000"
)
_MODE, _FIRST, _LAST, _SIZE = 0xF0, 0x100, 0x180, 1024 * 1024


def make_disk(
    *,
    first: str = "ganeti-helper: begin",
    last: str = "ganeti-helper: exit 0",
    copies: bool = True,
    hangs: bool = False,
) -> bytes:
    """A disk of one MiB with this guest; without ``copies`` it prints only the first text."""
    disk = bytearray(_SIZE)
    disk[: len(_CODE)] = _CODE
    disk[_MODE] = copies | hangs << 1
    for start, text in ((_FIRST, first), (_LAST, last)):
        data = f"{text}\r\n".encode()
        disk[start : start + len(data)] = data
    disk[510:512] = b"\x55\xaa"
    return bytes(disk)
