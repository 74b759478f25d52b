"""A firmware image of a few bytes that finds out whether an accelerator runs real guests.

A stock kernel needs more of a processor than firmware does: 64 bit mode with paging,
``lock cmpxchg16b``, SSE, and full speed. Some hosts offer /dev/kvm but interpret guest code in
software: they run firmware, and stop or crawl in a kernel. The image does, from the reset vector:

1. enter protected mode, build page tables (identity, one page of 2 MiB), enter long mode;
2. run ``lock cmpxchg16b`` and SSE2 on memory, and check what they did;
3. count down from four million (a few ms on a processor, 50 ms in TCG, many seconds interpreted);
4. write ``PASSED`` to QEMU's device ``isa-debug-exit``, which ends QEMU with ``EXIT_STATUS``.

It replaces the whole firmware (``-bios``), so nothing else takes time or can fail.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

#: Port of the ``isa-debug-exit`` device.
EXIT_PORT = 0xF4
PASSED = 0x31
#: Exit code of QEMU when ``PASSED`` is written (``value << 1 | 1``, QEMU's rule).
EXIT_STATUS = PASSED << 1 | 1

_SIZE = 0x10000
#: Address of the last 64 KiB of a PC firmware below 1 MiB.
_BASE = 0xF0000
_GDT = 0x400
_RESET = 0xFFF0
_LOOPS = 4_000_000

_REAL_MODE = (
    "fa",  # cli
    "fc",  # cld
    "2e 66 0f 01 16 20 04",  # lgdt cs:[_GDT + 0x20]
    "0f 20 c0",  # mov eax, cr0
    "0c 01",  # or al, 1                   protected mode
    "0f 22 c0",  # mov cr0, eax
    "66 ea {next} 08 00",  # jmp 0x08:next
)
_PROTECTED_MODE = (
    "66 b8 10 00",  # mov ax, 0x10
    "8e d8",  # mov ds, ax
    "8e c0",  # mov es, ax
    "8e d0",  # mov ss, ax
    "bc 00 80 00 00",  # mov esp, 0x8000
    "31 c0",  # xor eax, eax               clear 0x1000-0x5fff
    "bf 00 10 00 00",  # mov edi, 0x1000
    "b9 00 14 00 00",  # mov ecx, 0x1400
    "f3 ab",  # rep stosd
    "c7 05 00 10 00 00 03 20 00 00",  # mov dword [0x1000], 0x2003   level 4 -> level 3
    "c7 05 00 20 00 00 03 30 00 00",  # mov dword [0x2000], 0x3003   level 3 -> level 2
    "c7 05 00 30 00 00 83 00 00 00",  # mov dword [0x3000], 0x83     2 MiB at 0
    "b8 00 10 00 00",  # mov eax, 0x1000
    "0f 22 d8",  # mov cr3, eax
    "0f 20 e0",  # mov eax, cr4
    "0d 20 02 00 00",  # or eax, 0x220     PAE, SSE
    "0f 22 e0",  # mov cr4, eax
    "b9 80 00 00 c0",  # mov ecx, 0xc0000080
    "0f 32",  # rdmsr
    "0d 00 01 00 00",  # or eax, 0x100     long mode
    "0f 30",  # wrmsr
    "b8 33 00 00 80",  # mov eax, 0x80000033  paging, caches on
    "0f 22 c0",  # mov cr0, eax
    "ea {next} 18 00",  # jmp 0x18:next
)
_LONG_MODE = (
    "be 00 50 00 00",  # mov esi, 0x5000   memory there is zero
    "31 c0",  # xor eax, eax               expected: rdx:rax = 0
    "31 d2",  # xor edx, edx
    "bb 78 56 34 12",  # mov ebx, 0x12345678  wanted: rcx:rbx
    "b9 01 00 00 00",  # mov ecx, 1
    "f0 48 0f c7 0e",  # lock cmpxchg16b [rsi]
    "75 26",  # jnz fail
    "66 0f 6f 06",  # movdqa xmm0, [rsi]
    "66 0f fe c0",  # paddd xmm0, xmm0     twice as much
    "66 0f 7f 46 10",  # movdqa [rsi + 16], xmm0
    "81 7e 10 f0 ac 68 24",  # cmp dword [rsi + 16], 0x2468acf0
    "75 10",  # jnz fail
    "b9 {loops}",  # mov ecx, _LOOPS
    "ff c9",  # dec ecx
    "75 fc",  # jnz -2
    "b8 31 00 00 00",  # mov eax, PASSED
    "eb 05",  # jmp end
    "b8 32 00 00 00",  # fail: mov eax, PASSED + 1
    "ba f4 00 00 00",  # end: mov edx, EXIT_PORT
    "ef",  # out dx, eax
    "f4",  # hlt
)
_DESCRIPTORS = (
    0,
    0x00CF_9B00_0000_FFFF,  # 0x08: code, 32 bit
    0x00CF_9300_0000_FFFF,  # 0x10: data
    0x00AF_9B00_0000_FFFF,  # 0x18: code, 64 bit
)


def build() -> bytes:
    """The image, 64 KiB; the descriptors are marked as accessed, as nobody can write to a ROM."""
    image = bytearray(_SIZE)
    code = bytes(_assemble())
    image[: len(code)] = code
    table = struct.pack("<4Q", *_DESCRIPTORS)
    pointer = struct.pack("<HI", len(table) - 1, _BASE + _GDT)
    image[_GDT : _GDT + len(table) + len(pointer)] = table + pointer
    # jmp 0xf000:0
    image[_RESET : _RESET + 5] = b"\xea\x00\x00\x00\xf0"
    return bytes(image)


def _assemble() -> Iterator[int]:
    offset = 0
    loops = _LOOPS.to_bytes(4, "little").hex()
    for part in (_REAL_MODE, _PROTECTED_MODE, _LONG_MODE):
        text = " ".join(part)
        # An address is as long as the number that stands for it here.
        size = len(bytes.fromhex(text.format(next="00" * 4, loops=loops)))
        offset += size
        following = (_BASE + offset).to_bytes(4, "little").hex()
        yield from bytes.fromhex(text.format(next=following, loops=loops))
