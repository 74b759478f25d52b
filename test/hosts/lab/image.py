"""The disk of a bare Debian server: what an installer leaves, and archives of what comes later.

Debian's packages are downloaded when the disk is made, into apt's own cache on it, so that
``apt-get install`` in a server asks no network.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab.kernel import Kernel
from lab.packages import layer
from lab.place import SOURCES, LabError, Unavailable, being_made, cache

SUITE = "bookworm"
SIZE_MIB = 4096
INSTALLED = (
    "systemd",
    "systemd-sysv",
    "udev",
    "dbus",
    "openssh-server",
    "iproute2",
    "iputils-ping",
    "kmod",
    "procps",
    "python3",
)
#: What ``apt-get install`` finds without a network; the packages of the project need it, or its
#: documents tell to install it.
AT_HAND = (
    "adduser",
    "debconf",
    "drbd-utils",
    "libstdc++6",
    "lvm2",
    "qemu-system-x86",
    "qemu-utils",
    "socat",
    "zlib1g",
)
MODULES = (
    "autofs4",
    "virtio_pci",
    "virtio_blk",
    "virtio_net",
    "virtio_console",
    "virtio_rng",
    "9p",
    "9pnet_virtio",
    "ext4",
    "crc32c_generic",
    "crc32c_intel",
    "dm_mod",
    "dm_snapshot",
    "loop",
    "drbd",
    "tun",
    "bridge",
    "kvm-amd",
    "kvm-intel",
    "vhost_net",
)
_FILES = {
    "etc/fstab": "/dev/disk/by-id/virtio-root / ext4 noatime 0 0\n"
    "lab /srv/lab 9p trans=virtio,version=9p2000.L,msize=512000,cache=none 0 0\n",
    "etc/systemd/network/10-bridge.netdev": "[NetDev]\nName=br0\nKind=bridge\n"
    "[Bridge]\nForwardDelaySec=0\n",
    # systemd-networkd gives up a bridge for whose module it waits longer than 25 seconds.
    "etc/modules-load.d/bridge.conf": "bridge\n",
    "etc/systemd/network/20-card.network": "[Match]\nName=eth0\n[Network]\nBridge=br0\n",
    "etc/machine-id": "",
    "etc/systemd/system/lab-agent.service": "[Unit]\nDescription=Hands of the tests\n"
    "DefaultDependencies=no\nAfter=sysinit.target\n"
    "[Service]\nExecStart=/usr/bin/python3 -IS /usr/local/lib/lab-agent.py\nKillMode=process\n"
    "[Install]\nWantedBy=multi-user.target\n",
}
_ENABLED = ("lab-agent", "ssh", "systemd-networkd")
#: What an emulated processor would spend its first minute on.
_MASKED = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "systemd-networkd-wait-online.service",
    "systemd-pstore.service",
    "systemd-timesyncd.service",
)


def disk(kernel: Kernel, suite: str = SUITE, more: Sequence[str] = ()) -> Path:
    """A file system with ``suite`` of Debian; made on first use, which needs the network.

    ``more`` packages are at hand too.

    Raises:
        Unavailable: mmdebstrap is missing, or the packages cannot be downloaded.
    """
    at_hand = (*AT_HAND, *more)
    parts = (suite, *INSTALLED, "", *at_hand, "", *MODULES, kernel.version, *_FILES.items())
    text = "\n".join(map(str, (*parts, *_ENABLED, *_MASKED, SIZE_MIB)))
    text += (SOURCES / "agent.py").read_text()
    target = cache() / f"{suite}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"
    if not target.exists():
        for program in ("mmdebstrap", "mke2fs"):
            if shutil.which(program) is None:
                raise Unavailable(f"{program} is missing: apt-get install {program}")
        with being_made(target) as made:
            _make(made, kernel, suite, at_hand)
    return target / "disk.raw"


def _make(directory: Path, kernel: Kernel, suite: str, at_hand: Sequence[str]) -> None:
    root = directory / "root"
    _bootstrap(root, suite, at_hand)
    for name, text in _FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    shutil.copy(SOURCES / "agent.py", root / "usr/local/lib/lab-agent.py")
    (root / "srv/lab").mkdir()
    _install_modules(root, kernel)
    for verb, units in (("enable", _ENABLED), ("mask", _MASKED)):
        _run("systemctl", "--quiet", f"--root={root}", verb, *units)
    file = directory / "disk.raw"
    with file.open("wb") as stream:
        stream.truncate(SIZE_MIB << 20)
    _run("mke2fs", "-q", "-t", "ext4", "-E", "root_owner=0:0", "-d", str(root), str(file))
    shutil.rmtree(root)


def _bootstrap(root: Path, suite: str, at_hand: Sequence[str]) -> None:
    later = " ".join(at_hand)
    fetch = (
        'APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get install --yes --quiet --download-only'
        f" --no-install-recommends {later}"
    )
    _run(
        "mmdebstrap",
        "--quiet",
        "--mode=root",
        "--variant=minbase",
        f"--include={','.join(INSTALLED)}",
        "--format=directory",
        '--aptopt=APT::Install-Recommends "false"',
        '--aptopt=Acquire::Languages "none"',
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        "--dpkgopt=path-exclude=/usr/share/man/*",
        f"--customize-hook={fetch}",
        "--skip=cleanup/apt",
        suite,
        str(root),
    )
    for leftover in ("etc/resolv.conf", "etc/hostname"):
        (root / leftover).unlink(missing_ok=True)


def _install_modules(root: Path, kernel: Kernel) -> None:
    """Only what servers need: loading is as on any Debian, and the disk stays small."""
    target = root / "usr/lib/modules" / kernel.version
    for file in kernel.module_files(MODULES):
        place = target / file.relative_to(kernel.modules)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy(kernel.modules / name, target)
    _run("depmod", "-b", str(root), kernel.version, program=layer("storage") / "usr/bin/kmod")


def _run(*words: str, program: Path | None = None) -> None:
    ran = subprocess.run(words, executable=program, capture_output=True, text=True, check=False)
    if ran.returncode:
        text = (ran.stderr or ran.stdout).strip()
        raise LabError(f"{words[0]}: {text[-2000:]}")
