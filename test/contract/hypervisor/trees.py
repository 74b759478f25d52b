"""Guests that are file systems: a shell, and what starts and stops them, for chroot and lxc."""

from __future__ import annotations

import functools
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

BUSYBOX = shutil.which("busybox")
APPLETS = (
    "sh",
    "sleep",
    "kill",
    "cat",
    "echo",
    "mount",
    "umount",
    "ls",
    "ip",
    "mkdir",
    "mknod",
    "rm",
)
_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"

#: A process that ends when it is told so, and one that has to be killed.
DAEMON = "#!/bin/sh\n: > /daemon.ready\nwhile :; do sleep 1; done\n"
DEAF_DAEMON = DAEMON.replace(": >", "trap '' TERM PWR INT\n: >")
#: What the hypervisor chroot runs.
SCRIPT = """#!/bin/sh
echo "$1" >> /calls
case "$1" in
start)
    rm -f /daemon.ready
    /bin/daemon & echo $! > /daemon.pid
    until [ -e /daemon.ready ]; do sleep 0.1; done
    echo guest is up;;
stop) kill "$(cat /daemon.pid)";;
esac
"""
DEAF_SCRIPT = SCRIPT.replace('kill "$(cat /daemon.pid)"', "sleep 60")
#: What lxc runs.
INIT = """#!/bin/sh
trap 'echo going down; exit 0' PWR
echo guest is up
while :; do sleep 0.1; done
"""
DEAF_INIT = INIT.replace("'echo going down; exit 0'", "''")

OBEDIENT = {"ganeti-chroot": SCRIPT, "bin/daemon": DAEMON, "sbin/init": INIT}
DEAF = {"ganeti-chroot": DEAF_SCRIPT, "bin/daemon": DEAF_DAEMON, "sbin/init": DEAF_INIT}


def need() -> None:
    """Skip where such guests cannot be made."""
    if os.geteuid() != 0:
        pytest.skip("mounting disks needs root")
    if BUSYBOX is None:
        pytest.skip("no busybox on this machine: install busybox-static")


def image(path: Path, programs: Mapping[str, str] = OBEDIENT) -> Path:
    """Write a file system with these programs to a file."""
    path.write_bytes(_content(tuple(sorted(programs.items()))))
    return path


@functools.cache
def _content(programs: tuple[tuple[str, str], ...]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="ganeti-tree-") as directory:
        tree, made = Path(directory) / "root", Path(directory) / "image"
        _plant(tree, programs)
        with made.open("wb") as stream:
            stream.truncate(6 << 20)
        subprocess.run(
            ["mkfs.ext4", "-q", "-O", "^has_journal", "-d", tree, made],
            check=True,
            env={"PATH": _PATH},
        )
        return made.read_bytes()


def _plant(tree: Path, programs: tuple[tuple[str, str], ...]) -> None:
    assert BUSYBOX is not None
    for name in ("bin", "sbin", "dev", "proc", "sys", "tmp", "etc", "mnt"):
        (tree / name).mkdir(parents=True)
    # A shell needs it for what it runs in the background.
    os.mknod(tree / "dev/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    shutil.copy(BUSYBOX, tree / "bin/busybox")
    for applet in APPLETS:
        (tree / "bin" / applet).symlink_to("busybox")
    for name, text in programs:
        (tree / name).write_text(text)
        (tree / name).chmod(0o755)
