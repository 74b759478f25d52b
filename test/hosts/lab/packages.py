"""Debian packages, downloaded and unpacked for the guests; nothing is installed here.

A *layer* is a directory of unpacked packages that a guest gets over this machine's root. What this
machine has already is not downloaded.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab.place import LabError, Unavailable, being_made, cache

#: Directories that are links into /usr in Debian: without them a layer would hide the root's.
MERGED = ("bin", "sbin", "lib", "lib64")
DOWNLOAD_LIMIT = 900.0

#: Layers by name; a guest names the ones it wants.
LAYERS: dict[str, tuple[str, ...]] = {
    "storage": ("kmod", "udev", "lvm2", "thin-provisioning-tools", "busybox-static"),
    "node": ("drbd-utils", "openssh-server", "openssh-client", "socat", "iputils-arping"),
    "containers": ("lxc", "busybox-static", "e2fsprogs", "apparmor"),
    "qemu": ("qemu-system-x86", "qemu-utils", "seabios"),
    "fence": (
        *("fence-agents", "ipmitool", "libfreeipmi17"),
        *("python3-pexpect", "python3-ptyprocess", "python3-pycurl"),
    ),
    "controller": ("openipmi", "libopenipmi0", "libpopt0"),
    "xen": ("xen-hypervisor-4.17-amd64", "xen-utils-4.17", "xen-utils-common", "xenstore-utils"),
}
#: Layers without the dependencies of their packages: agents for clouds bring 100 MB.
BARE = ("fence", "controller")


def layer(name: str) -> Path:
    """The directory of a layer; made on first use, which needs the network.

    Raises:
        Unavailable: the packages cannot be downloaded.
    """
    wanted = LAYERS[name]
    digest = hashlib.sha256("\n".join((*wanted, _release())).encode()).hexdigest()[:10]
    target = cache() / "layers" / f"{name}-{digest}"
    if not target.exists():
        with being_made(target) as made:
            for directory in MERGED:
                (made / "usr" / directory).mkdir(parents=True)
                (made / directory).symlink_to(f"usr/{directory}")
            for archive in download(wanted, dependencies=name not in BARE):
                unpack(archive, made)
    return target


def download(wanted: Sequence[str], *, dependencies: bool = True) -> list[Path]:
    """Archives of packages and of what they need that is not installed here.

    Asked first with this machine's lists of packages, then with lists of its own that are new.
    """
    key = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:10]
    archives = cache() / "archives" / key
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    own_lists = cache() / "lists"
    lists = ["-o", f"Dir::State::lists={own_lists}"]
    trouble = ""
    for options in ([], lists):
        if options:
            (own_lists / "partial").mkdir(parents=True, exist_ok=True)
            _apt(["update", *options])
        ran = _fetch(wanted, archives, options, dependencies)
        if ran.returncode == 0:
            return sorted(archives.glob("*.deb"))
        trouble = (ran.stderr or ran.stdout).strip()
    raise Unavailable(
        f"packages {' '.join(wanted)} cannot be downloaded (no network, or not Debian?): {trouble}"
    )


def _fetch(
    wanted: Sequence[str], archives: Path, options: list[str], dependencies: bool
) -> subprocess.CompletedProcess[str]:
    where = ["-o", f"Dir::Cache::archives={archives}"]
    if not dependencies:
        return _apt(["download", *options, *wanted], cwd=archives)
    words = ["install", "--yes", "--quiet", "--download-only", "--no-install-recommends"]
    # Asked for by name, a package is wanted even if this machine has it: the guest may not see
    # how it was set up here, and a layer must not depend on what is installed later.
    return _apt([*words, "--reinstall", *where, *options, *wanted])


def _apt(words: Sequence[str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    options = ["-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=1"]
    try:
        return subprocess.run(
            ["apt-get", *options, *words],
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_LIMIT,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
        )
    except FileNotFoundError as err:
        raise Unavailable("apt-get is missing: the lab needs a Debian machine") from err


def unpack(archive: Path, target: Path) -> None:
    """Put the files of a package into a directory; no script of the package runs."""
    reading = ["dpkg-deb", "--fsys-tarfile", str(archive)]
    with subprocess.Popen(reading, stdout=subprocess.PIPE) as source:
        argv = ["tar", "-x", "--keep-directory-symlink", "-C", str(target)]
        ran = subprocess.run(argv, stdin=source.stdout, capture_output=True, text=True, check=False)
    if source.returncode or ran.returncode:
        raise LabError(f"{archive} cannot be unpacked: {ran.stderr.strip()}")


def _release() -> str:
    """A layer fits the release it was made for."""
    return Path("/etc/os-release").read_text(encoding="utf-8")
