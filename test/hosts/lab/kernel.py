"""Debian's own kernel and its modules, unpacked."""

from __future__ import annotations

import lzma
import re
import subprocess
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.packages import download, layer, unpack
from lab.place import LabError, being_made, cache

META_PACKAGE = "linux-image-amd64"
_XZ = b"\xfd7zXZ\x00"
_GZIP = b"\x1f\x8b\x08"


@dataclass(frozen=True)
class Kernel:
    """An unpacked kernel; ``image`` is an ELF file, which starts without firmware and unpacker."""

    directory: Path

    @property
    def version(self) -> str:
        return next(iter((self.directory / "lib/modules").iterdir())).name

    @property
    def modules(self) -> Path:
        return self.directory / "lib/modules" / self.version

    @property
    def packed(self) -> Path:
        return self.directory / "boot" / f"vmlinuz-{self.version}"

    @property
    def image(self) -> Path:
        return self.directory / "vmlinux"

    def module_files(self, names: Iterable[str]) -> list[Path]:
        """Files to load for modules, in the order to load them; unknown names are built in."""
        needs = dict(_dependencies(self.modules / "modules.dep"))
        by_name = {_module_name(path): path for path in needs}
        files: list[Path] = []
        for name in names:
            path = by_name.get(name.replace("-", "_"))
            for item in [] if path is None else [*reversed(needs[path]), path]:
                if self.modules / item not in files:
                    files.append(self.modules / item)
        return files


def _dependencies(table: Path) -> Iterator[tuple[str, list[str]]]:
    for line in table.read_text(encoding="ascii").splitlines():
        path, _, needs = line.partition(":")
        yield path, needs.split()


def _module_name(path: str) -> str:
    return Path(path).name.partition(".ko")[0].replace("-", "_")


def kernel() -> Kernel:
    """The kernel for guests; downloaded and unpacked on first use."""
    target = cache() / "kernel"
    if not target.exists():
        with being_made(target) as made:
            _make(made)
    return Kernel(target)


def _make(directory: Path) -> None:
    for archive in download([_package()], dependencies=False):
        unpack(archive, directory)
    made = Kernel(directory)
    # The program of the layer, by the libraries of this machine.
    depmod = subprocess.run(
        ["depmod", "-b", str(directory), made.version],
        executable=layer("storage") / "usr/bin/kmod",
        capture_output=True,
        text=True,
        check=False,
    )
    if depmod.returncode:
        raise LabError(f"depmod: {depmod.stderr.strip()}")
    made.image.write_bytes(elf_inside(made.packed.read_bytes()))


def _package() -> str:
    """Name of the package behind the meta package."""
    argv = ["apt-cache", "depends", META_PACKAGE]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    found = re.search(r"Depends: (linux-image-[0-9]\S+)", ran.stdout)
    if found is None:
        lists = ["-o", f"Dir::State::lists={cache() / 'lists'}"]
        ran = subprocess.run([*argv, *lists], capture_output=True, text=True, check=False)
        found = re.search(r"Depends: (linux-image-[0-9]\S+)", ran.stdout)
    if found is None:
        raise LabError(f"apt-cache knows no kernel behind {META_PACKAGE}: run apt-get update")
    return found[1]


def elf_inside(image: bytes) -> bytes:
    """The ELF kernel inside a bzImage."""
    for magic in (_XZ, _GZIP):
        at = image.find(magic)
        while at >= 0:
            data = _unpack(magic, image[at:])
            if data.startswith(b"\x7fELF"):
                return data
            at = image.find(magic, at + 1)
    raise LabError("the kernel image is packed in a way that is not known here")


def _unpack(magic: bytes, data: bytes) -> bytes:
    try:
        if magic == _XZ:
            return lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(data)
        return zlib.decompressobj(31).decompress(data)
    except (lzma.LZMAError, zlib.error):  # the bytes looked like a beginning by chance
        return b""
