"""Files and devices behind a qemu-nbd of their own, so that all are read and written by NBD."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

from ganeti import errors
from ganeti.base import files, process
from ganeti.net import nbd

#: Seconds until a server listens, and until it has ended after its only client left.
_START, _END = 60.0, 60.0


def build_argv(
    target: str, format: str, socket: str, pid_file: str, *, write: bool, keep: bool = False
) -> list[str]:
    """The argument list; it ends when its first client leaves. Pure.

    With ``keep`` the client may write, and the target stays as it is.
    """
    access = ["--cache=writeback", "--discard=unmap"] if write else ["--read-only"]
    if keep:
        access = ["--snapshot", "--cache=unsafe", "--discard=unmap"]
    return [
        "qemu-nbd",
        "--fork",
        f"--pid-file={pid_file}",
        f"--socket={socket}",
        "--shared=1",
        f"--format={format}",
        *access,
        target,
    ]


@contextlib.contextmanager
def offer(target: str, format: str, work: Path) -> Iterator[Path]:
    """A socket by which one client reads and writes a file, which stays as it is.

    Written data is lost at the end; until then it is in a file of ``work`` that has no name. The
    server ends when its client leaves.

    Raises:
        BlockDeviceError: it cannot be opened; the text has the server's words.
    """
    socket, pid_file = _name(work)
    try:
        with nbd.short_address(socket) as address:
            argv = build_argv(target, format, address, str(pid_file), write=False, keep=True)
            env = {"PATH": process.search_path(), "LC_ALL": "C", "TMPDIR": str(work)}
            process.run_checked(argv, timeout=_START, env=env)
    except errors.CommandError as err:
        raise errors.BlockDeviceError(errors.text(err)) from err
    try:
        yield socket
    finally:
        end_left(work, pid_file.name)
        files.remove(socket)


def end_left(work: Path, pattern: str = "*.pid") -> None:
    """End servers that still run, such as those of an earlier node daemon."""
    for pid_file in work.glob(pattern):
        text = files.read_text(pid_file).strip()
        pid = int(text) if text.isdigit() else 0
        words = _read_words(pid)
        if f"--pid-file={pid_file}".encode() in words:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            if not process.wait_exit(pid, _END):
                process.kill_group(pid)
        files.remove(pid_file)


def _read_words(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _name(work: Path) -> tuple[Path, Path]:
    name = secrets.token_hex(4)
    return work / f"{name}.sock", work / f"{name}.pid"


@contextlib.contextmanager
def serve(
    target: str,
    format: str,
    work: Path,
    *,
    write: bool = False,
    contexts: Sequence[str] = (),
) -> Iterator[nbd.Nbd]:
    """A connection to a server of one file, device or address that QEMU opens by itself.

    ``work`` is a directory of our own for its socket. The server ends with the connection, also
    when this process is killed.

    Raises:
        BlockDeviceError: it cannot be opened; the text has the server's words.
    """
    socket, pid_file = _name(work)
    try:
        with nbd.short_address(socket) as address:
            argv = build_argv(target, format, address, str(pid_file), write=write)
            process.run_checked(argv, timeout=_START)
        pid = int(files.read_text(pid_file))
        client = nbd.connect(socket, contexts=contexts, what=target)
    except errors.CommandError as err:
        raise errors.BlockDeviceError(errors.text(err)) from err
    finally:
        files.remove(socket)
        files.remove(pid_file)
    try:
        yield client
    finally:
        client.close()
        if not process.wait_exit(pid, _END):
            raise errors.BlockDeviceError(
                f"the server of {target} (process {pid}) does not end within {_END:g} s"
            )
