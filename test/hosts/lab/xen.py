"""A lab machine that boots into Xen: Debian's hypervisor, the machine's own kernel as domain 0."""

from __future__ import annotations

import gzip
from pathlib import Path

from lab import initramfs
from lab.kernel import Kernel
from lab.packages import layer
from lab.place import LabError, being_made, cache

LAYER = "xen"
MODULES = (
    "xen-evtchn",
    "xenfs",
    "xen-privcmd",
    "xen-gntdev",
    "xen-gntalloc",
    "xen-blkback",
    "xen-netback",
    "bridge",
    "tun",
    "dm_mod",
    "drbd",
)
_COMMAND_LINE = (
    "console=com1 com1=115200,8n1 dom0_mem=800M,max:800M dom0_max_vcpus=1 loglvl=warning"
    " guest_loglvl=warning noreboot"
)
#: What Debian's init scripts do: the store, the name of domain 0, the consoles with logs.
SERVICES = """
    mount -t xenfs xenfs /proc/xen
    mkdir -p /run/xen /var/log/xen/console /var/lib/xen/dump /run/xenstored /var/lib/xenstored
    mkdir -p /run/lock/subsys
    programs=/usr/lib/xen-4.17/bin
    $programs/oxenstored --pid-file /run/xen/xenstored.pid
    xenstore-write /local/domain/0/name Domain-0
    $programs/xen-init-dom0
    $programs/xenconsoled --pid-file=/run/xen/xenconsoled.pid --log=guest --log-dir=/var/log/xen
"""


def options(kernel: Kernel, command_line: str) -> list[str]:
    """QEMU starts Xen itself; domain 0's kernel and initramfs are its multiboot modules."""
    modules = f"{kernel.packed} {_escaped(command_line)},{initramfs.make_for_machine(kernel)}"
    return ["-kernel", str(_hypervisor()), "-append", _COMMAND_LINE, "-initrd", modules]


def _escaped(command_line: str) -> str:
    return command_line.replace(",", ",,")


def _hypervisor() -> Path:
    """Xen as a plain ELF file, as QEMU's multiboot loader wants it."""
    packed = sorted((layer(LAYER) / "boot").glob("xen-*-amd64.gz"))
    if not packed:
        raise LabError("the package of Xen holds no hypervisor")
    target = cache() / packed[0].with_suffix("").name
    if not target.exists():
        with being_made(target) as made:
            (made / "xen").write_bytes(gzip.decompress(packed[0].read_bytes()))
    return target / "xen"
