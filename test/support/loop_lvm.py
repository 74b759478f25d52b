"""Real LVM on loop devices: its metadata, without the kernel's device mapper.

The tools run as they do on a server, but for ``activation = 0``: volumes are made, grown, renamed
and removed, yet have no device below ``/dev``. No other disk of the machine is looked at.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

MIB = 1024 * 1024

_CONFIGURATION = """\
devices {{ dir="/dev" scan=["/dev"] filter=[{filters}"r|.*|"] use_devicesfile=0 }}
backup {{ backup=0 archive=0 backup_dir="{home}/backup" archive_dir="{home}/archive" }}
activation {{ udev_sync=0 udev_rules=0 monitoring=0 }}
global {{ locking_dir="{home}/lock" use_lvmpolld=0 activation=0 }}
"""


def skip_if_unavailable() -> None:
    """Skip the test that runs where loop devices cannot be used."""
    if os.geteuid() != 0:
        pytest.skip("loop devices need root")
    if shutil.which("lvm") is None:
        pytest.skip("lvm2 is not installed")
    if not Path("/dev/loop-control").exists():
        pytest.skip("this machine has no loop devices")


class LoopDisks:
    """Disks for LVM; ``home`` becomes the directory with its configuration."""

    def __init__(self, home: Path, sizes: Sequence[int]) -> None:
        self.home = home
        self.files = [home / f"disk{number}" for number in range(len(sizes))]
        home.mkdir(parents=True, exist_ok=True)
        for file, size in zip(self.files, sizes):
            with file.open("wb") as stream:
                stream.truncate(size * MIB)
        self.devices = [self._attach(file) for file in self.files]
        self._configure()

    @staticmethod
    def _attach(file: Path) -> str:
        return run("losetup", "--find", "--show", str(file)).strip()

    def _configure(self) -> None:
        filters = "".join(f'"a|^{device}$|",' for device in self.devices if device)
        text = _CONFIGURATION.format(filters=filters, home=self.home)
        (self.home / "lvm.conf").write_text(text)

    def lvm(self, *argv: str) -> str:
        """Run a tool of LVM on these disks only."""
        return run(*argv, LVM_SYSTEM_DIR=str(self.home), LVM_SUPPRESS_FD_WARNINGS="1")

    def group(self, name: str = "xenvg") -> None:
        """Make all disks one volume group."""
        self.lvm("pvcreate", *self.devices)
        self.lvm("vgcreate", name, *self.devices)

    def lose(self, number: int) -> None:
        """Take a disk away, as a broken controller does."""
        run("losetup", "--detach", self.devices[number])
        self.devices[number] = ""
        self._configure()

    def close(self) -> None:
        for device in self.devices:
            if device:
                run("losetup", "--detach", device)
        for file in self.files:
            file.unlink()


def run(*argv: str, **environment: str) -> str:
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout


@contextmanager
def loop_disks(home: Path, *sizes: int) -> Iterator[LoopDisks]:
    """Loop devices with these sizes in MiB, detached at the end."""
    disks = LoopDisks(home, sizes)
    try:
        yield disks
    finally:
        disks.close()
