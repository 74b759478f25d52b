"""Files and devices behind a qemu-nbd of their own, so that all are read and written by NBD."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

from ganeti import errors
from ganeti.base import files, process
from ganeti.net import nbd

#: Seconds until a server listens, and until it has ended after its only client left.
_START, _END = 60.0, 60.0


def build_argv(target: str, format: str, socket: str, pid_file: str, *, write: bool) -> list[str]:
    """The argument list; it ends when its first client leaves. Pure."""
    access = ["--cache=writeback", "--discard=unmap"] if write else ["--read-only"]
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
    name = secrets.token_hex(4)
    socket, pid_file = work / f"{name}.sock", work / f"{name}.pid"
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
