"""The two initramfs archives: that of a lab machine, and that of a tiny instance inside it."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.kernel import Kernel
from lab.packages import layer
from lab.place import SOURCES, cache

#: What a lab machine needs before it sees the modules of its kernel.
MACHINE_MODULES = (
    "virtio_pci",
    "virtio_blk",
    "virtio_net",
    "virtio_console",
    "virtio_rng",
    "9pnet_virtio",
    "9p",
    "overlay",
    "crc32c_generic",
    "crc32c_intel",
    "ext4",
)
#: What a server needs before it sees its disk.
SERVER_MODULES = ("virtio_pci", "virtio_blk", "crc32c_generic", "crc32c_intel", "ext4")
#: Front ends of QEMU and Xen, and the power button.
INSTANCE_MODULES = (
    "virtio_pci",
    "virtio_blk",
    "virtio_net",
    "button",
    "evdev",
    "xen-blkfront",
    "xen-netfront",
)
_DIRECTORIES = ("bin", "dev", "proc", "sys", "tmp", "newroot", "lower", "upper", "modules")
_DIRECTORY, _FILE, _LINK = 0o040755, 0o100755, 0o120777


def make_for_machine(kernel: Kernel) -> Path:
    return _archive("machine", kernel, SOURCES / "init.machine", MACHINE_MODULES)


def make_for_server(kernel: Kernel) -> Path:
    return _archive("server", kernel, SOURCES / "init.server", SERVER_MODULES)


def make_for_instance(kernel: Kernel) -> Path:
    return _archive("instance", kernel, SOURCES / "init.instance", INSTANCE_MODULES)


def _archive(name: str, kernel: Kernel, init: Path, modules: Sequence[str]) -> Path:
    """The archive; made again when its init program or the kernel is another."""
    parts = (init.read_text(), kernel.version, *modules)
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:10]
    target = cache() / f"initrd.{name}-{key}"
    if not target.exists():
        data = gzip.compress(b"".join(_members(kernel, init, modules)), 1)
        fd, temporary = tempfile.mkstemp(dir=target.parent)
        with os.fdopen(fd, "wb") as out:
            out.write(data)
        os.replace(temporary, target)
    return target


def _members(kernel: Kernel, init: Path, modules: Sequence[str]) -> Iterator[bytes]:
    for directory in _DIRECTORIES:
        yield _member(directory, _DIRECTORY)
    yield _member("bin/busybox", _FILE, (layer("storage") / "usr/bin/busybox").read_bytes())
    yield _member("bin/sh", _LINK, b"busybox")
    files = kernel.module_files(modules)
    for file in files:
        yield _member(f"modules/{file.name}", _FILE, file.read_bytes())
    yield _member("modules/order", _FILE, "".join(f"{file.name}\n" for file in files).encode())
    yield _member("init", _FILE, init.read_bytes())
    yield _member("TRAILER!!!", 0)


def _member(name: str, mode: int, data: bytes = b"") -> bytes:
    """One file of a cpio archive in the "newc" form (see the kernel's buffer-format.rst)."""
    raw = name.encode() + b"\0"
    numbers = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0)
    head = b"070701" + b"".join(b"%08X" % number for number in numbers) + raw
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
