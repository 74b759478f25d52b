"""Programs that read files from outside: without network, privileges or more than they need.

As root the program runs as ``nobody`` in name spaces of its own (network, processes, IPC, mounts),
without any capability; without root in a name space of users. It reads and writes only the open
descriptors that it gets, as ``/proc/self/fd/N``. Time, memory and size of its output are limited.
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
#: Progress in the output of ``qemu-img -p``.
PERCENT = re.compile(rb"\(([0-9.]+)/100%\)")


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
            "setpriv",
            f"--reuid={UID}",
            f"--regid={GID}",
            "--clear-groups",
            "--no-new-privs",
            "--inh-caps=-all",
            "--bounding-set=-all",
            "--",
        ]
    else:
        spaces = ["--user", *spaces]
        privileges = ["setpriv", "--no-new-privs", "--"]
    return [
        "unshare",
        *spaces,
        "--",
        *privileges,
        "prlimit",
        f"--cpu={limits.processor}",
        f"--as={_MEMORY}",
        f"--fsize={limits.file_size}",
        "--nofile=64",
        "--core=0",
        "--",
        *argv,
    ]


def read_percent(data: bytes, before: float) -> float:
    """The percent that qemu-img printed last; ``before`` if there is none. Pure."""
    found = PERCENT.findall(data)
    return float(found[-1]) if found else before


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
    """Run a program confined; blocks until its end and returns its output (unless ``stdout``).

    ``fds`` are the descriptors that it keeps, under their numbers; ``allowed`` are exit codes that
    mean success, beside 0. ``on_progress`` is called at least twice a second, with the percent
    that the program printed last (0 before). An exception of ``on_progress`` ends the program.

    Raises:
        OpPrereqError: it failed; the text has its message, which is about the file that it read.
        GenericError: the program cannot be started, or took longer than ``limits.seconds``.
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
        out, words = _follow(argv[0], child, patience.scale(limits.seconds), on_progress)
    except BaseException:  # an interrupt too: kill the program and raise it
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
    name: str,
    child: subprocess.Popen[bytes],
    seconds: float,
    on_progress: Callable[[float], None],
) -> tuple[bytes, bytes]:
    import selectors

    found: dict[str, bytearray] = {"out": bytearray(), "err": bytearray()}
    end, percent = Deadline(seconds), 0.0
    with selectors.DefaultSelector() as selector:
        for kind, stream in (("out", child.stdout), ("err", child.stderr)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, kind)
        while selector.get_map():
            for key, _events in selector.select(0.5):
                data = os.read(key.fd, 1 << 16)
                if not data:
                    selector.unregister(key.fileobj)
                    continue
                percent = read_percent(data, percent)
                kept = found[key.data]
                kept += data[: _MOST_OUTPUT - len(kept)]
            on_progress(percent)
            if end.left <= 0:
                raise errors.GenericError(f"{name} took longer than {seconds:.0f} s")
    child.wait()
    return bytes(found["out"]), bytes(found["err"])


def _explain(name: str, code: int, err: bytes) -> None:
    tail = " | ".join(err.decode("utf-8", "replace").strip().splitlines()[-2:])
    if tail.startswith(f"prlimit: failed to execute {name}:"):
        raise errors.make_environment_error(f"{name} is missing on the master; install it")
    # Messages of unshare, setpriv and prlimit begin so; they fail before the file is read.
    if tail.startswith(("unshare:", "setpriv:", "prlimit:")):
        raise errors.GenericError(
            f"the master cannot isolate a process: {tail}; images need unshare, setpriv and"
            " prlimit (util-linux) and namespaces of the kernel"
        )
    number = -code if code < 0 else code - 128
    if not tail and number > 0:
        tail = f"it used more time, memory or room than it may (signal {number})"
    # gzip, xz and zstd begin their messages with their names.
    tail = tail.removeprefix(f"{name}: ") or f"exit code {code}"
    raise errors.make_invalid_error(f"the image is refused: {name}: {tail}")
