"""Programs that read files from outside: without network, privileges or more than they need.

As root the program runs as ``nobody`` in name spaces of its own (network, processes, IPC, mounts),
without any capability; without root in a name space of users. What it may read and write are the
open descriptors that it gets, which it names ``/proc/self/fd/N``. Its time, memory and the size of
what it writes are limited.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ganeti import errors
from ganeti.base import patience, process
from ganeti.base.clock import Deadline

#: User and group that confined programs have; those of ``nobody`` on every system.
UID = GID = 65534
_MEMORY = 2 << 30
#: Bytes of messages that are read.
_MOST_OUTPUT = 1 << 20
_PERCENT = re.compile(rb"\(([0-9.]+)/100%\)")


class Limits(NamedTuple):
    """Seconds of processor and of the clock, and bytes that may be written to one file."""

    processor: int
    seconds: float
    file_size: int


def build_argv(argv: Sequence[str], limits: Limits, *, root: bool) -> list[str]:
    """The argument list that runs a program confined. Pure."""
    spaces = ["--net", "--ipc", "--mount", "--pid", "--fork", "--kill-child"]
    if root:
        privileges = [
            "setpriv", f"--reuid={UID}", f"--regid={GID}", "--clear-groups", "--no-new-privs",
            "--inh-caps=-all", "--bounding-set=-all", "--",
        ]  # fmt: skip
    else:
        spaces = ["--user", *spaces]
        privileges = ["setpriv", "--no-new-privs", "--"]
    return [
        "unshare", *spaces, "--", *privileges,
        "prlimit", f"--cpu={limits.processor}", f"--as={_MEMORY}", f"--fsize={limits.file_size}",
        "--nofile=64", "--core=0", "--", *argv,
    ]  # fmt: skip


def run(
    argv: Sequence[str],
    limits: Limits,
    *,
    fds: Sequence[int] = (),
    stdin: int | None = None,
    stdout: int | None = None,
    allowed: Sequence[int] = (),
    on_progress: Callable[[float], None] = lambda _percent: None,
) -> str:
    """Run a program confined to its end, and return what it wrote (unless to ``stdout``).

    ``fds`` are the descriptors that it keeps, under their numbers; ``allowed`` are exit codes that
    do not mean failure, beside 0. ``on_progress`` is called at
    least twice a second, with the percent that the program tells (0 while it does not); what it
    raises ends the program.

    Raises:
        OpPrereqError: it failed; its words, which are about the file that it read.
        GenericError: it could not be begun, or used more than its limits.
    """
    command = build_argv(argv, limits, root=os.geteuid() == 0)
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=subprocess.PIPE if stdout is None else stdout,
            stderr=subprocess.PIPE,
            env={"PATH": process.search_path(), "LC_ALL": "C", "HOME": "/nonexistent"},
            cwd="/",
            pass_fds=tuple(fds),
            start_new_session=True,
        )
    except OSError as error:
        raise errors.GenericError(f"cannot run {command[0]}: {error.strerror}") from error
    try:
        out, words = _follow(child, patience.scale(limits.seconds), on_progress)
    except BaseException:  # a cancelled job, too, must not leave it running
        process.kill_group(child.pid)
        child.wait()
        raise
    finally:
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                stream.close()
    if child.returncode and child.returncode not in allowed:
        _explain(argv[0], child.returncode, words)
    return out.decode("utf-8", "replace")


def _follow(
    child: subprocess.Popen[bytes], seconds: float, on_progress: Callable[[float], None]
) -> tuple[bytes, bytes]:
    import selectors

    found: dict[str, bytearray] = {"out": bytearray(), "err": bytearray()}
    end, percent = Deadline(seconds), 0.0
    with selectors.DefaultSelector() as selector:
        for name, stream in (("out", child.stdout), ("err", child.stderr)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, name)
        while selector.get_map():
            for key, _events in selector.select(0.5):
                data = os.read(key.fd, 1 << 16)
                if not data:
                    selector.unregister(key.fileobj)
                    continue
                told = _PERCENT.findall(data)
                percent = float(told[-1]) if told else percent
                kept = found[key.data]
                kept += data[: _MOST_OUTPUT - len(kept)]
            on_progress(percent)
            if end.left <= 0:
                raise errors.GenericError(f"{child.args[-1]!r} took longer than {seconds:.0f} s")  # type: ignore[index]
    child.wait()
    return bytes(found["out"]), bytes(found["err"])


def _explain(name: str, code: int, err: bytes) -> None:
    lines = err.decode("utf-8", "replace").strip().splitlines()
    tail = " | ".join(lines[-2:])
    # unshare, setpriv and prlimit say who they are; they fail before a byte of the file is read.
    if tail.startswith(("unshare:", "setpriv:", "prlimit:")):
        raise errors.GenericError(
            f"a confined process cannot be made here: {tail}; images need unshare, setpriv and"
            " prlimit (util-linux) and name spaces of the kernel"
        )
    if code < 0 or code > 128:
        number = -code if code < 0 else code - 128
        tail = (
            tail or f"it used more time or memory than it may, or wrote too much (signal {number})"
        )
    raise errors.make_invalid_error(f"the image is refused: {name}: {tail or f'exit code {code}'}")
