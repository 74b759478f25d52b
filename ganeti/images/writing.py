"""Writing an image to a disk; holes stay holes."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable

from ganeti import errors
from ganeti.base import process
from ganeti.images import confine
from ganeti.images.making import node_spec

_MIB = 1024 * 1024
#: Parts of the disk that are written at the same time.
_COROUTINES = 8
_TAIL = 2000


def build_argv(source: str, target: str, *, block: bool) -> list[str]:
    """The argument list; ``target`` is there already, and not smaller. Pure.

    Parts without data are made zero there by discarding, where the disk can do that. A block device
    is written past the cache of the node, and all of it is on the disk at the end.
    """
    return [
        "qemu-img",
        "convert",
        "-p",
        "-n",
        "-W",
        "-m",
        str(_COROUTINES),
        "-t",
        "none" if block else "writeback",
        "-O",
        "raw",
        source,
        target,
    ]


def write(fd: int, target: str, disk_size: int, report: Callable[[int, int], None]) -> None:
    """Write the image in an open file to a path or an address that QEMU opens by itself.

    ``disk_size`` is that of the image in MiB. Blocks for as long as that takes; ``report``
    gets bytes done and bytes in all every half second, and may raise, which ends it.

    Raises:
        BlockDeviceError: the disk is too small, or writing failed.
    """
    block = False
    if target.startswith("/"):
        try:
            block = stat.S_ISBLK(os.stat(target).st_mode)
        except OSError as err:
            raise errors.BlockDeviceError(f"cannot write to {target}: {err.strerror}") from err
    argv = build_argv(node_spec("qcow2", f"/proc/self/fd/{fd}"), target, block=block)
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": process.search_path(), "LC_ALL": "C"},
            pass_fds=(fd,),
            start_new_session=True,
        )
    except OSError as err:
        raise errors.BlockDeviceError(
            f"cannot run qemu-img: {err.strerror}; install qemu-utils on this node"
        ) from err
    assert child.stdout is not None
    with child.stdout as stream:
        try:
            tail = _follow(stream.fileno(), disk_size * _MIB, report)
        except BaseException:  # an interrupt too: kill the program and raise it
            process.kill_group(child.pid)
            child.wait()
            raise
    if child.wait():
        text = " | ".join(confine.PERCENT.sub(b"", tail).decode("utf-8", "replace").split("\n"))
        raise errors.BlockDeviceError(f"the image cannot be written to {target}: {text.strip()}")


def _follow(fd: int, size: int, report: Callable[[int, int], None]) -> bytes:
    import select

    tail, percent = b"", 0.0
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    while True:
        if poller.poll(500):
            data = os.read(fd, 1 << 16)
            if not data:
                return tail
            percent = confine.read_percent(data, percent)
            tail = (tail + data)[-_TAIL:]
        report(int(size * percent / 100), size)
