"""Starting QEMU: with open descriptors, errors as text, and nothing left after a failure."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ganeti import errors
from ganeti.base import process
from ganeti.hypervisor.kvm import qemu_process

#: Seconds QEMU may take until everything is set up; memory of huge pages is filled in that time.
START_TIMEOUT = 120.0
_KILL_TIMEOUT = 5.0
_WORDS = 2000


def launch(
    argv: Sequence[str],
    *,
    directory: Path,
    pid_file: Path,
    log: Path | None = None,
    fds: Sequence[int] = (),
    timeout: float = START_TIMEOUT,
) -> str:
    """Run a ``-daemonize``d QEMU until it is in the background; returns its warnings.

    ``log`` is the file that QEMU was told to write its messages to, if any; what it says before
    that is on its output. ``directory`` is where its relative sockets are made; ``fds`` keep their
    numbers in it. The background process has a session of its own, so it outlives its starter.

    Raises:
        HypervisorError: QEMU's own words when it refused; or it did not get ready in time, and
            then it was killed.
    """
    try:
        child = subprocess.Popen(
            list(argv),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": process.SAFE_PATH, "LC_ALL": "C"},
            pass_fds=tuple(fds),
            start_new_session=True,
        )
    except OSError as err:
        raise errors.HypervisorError(f"cannot start {argv[0]}: {err.strerror}") from err
    try:
        output, _ = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired as err:
        _end(child, pid_file)
        raise errors.HypervisorError(
            f"QEMU did not get ready in {timeout:g} s and was ended: {shlex.join(argv)[:200]}"
        ) from err
    except BaseException:  # an interrupt too: stop the half-started QEMU and raise it
        _end(child, pid_file)
        raise
    text = "\n".join(
        filter(None, (output.decode("utf-8", "replace").strip(), read_last_messages(log)))
    )
    if child.returncode != 0:
        raise errors.HypervisorError(_explain(child.returncode, text))
    return text


def read_last_messages(log: Path | None) -> str:
    """The end of QEMU's messages, empty when there are none."""
    if log is None:
        return ""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _WORDS))
            return stream.read().decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return ""


def _end(child: subprocess.Popen[bytes], pid_file: Path) -> None:
    """End the starting process and the background one, which is in a session of its own."""
    process.kill_group(child.pid)
    text = pid_file.read_text(encoding="ascii").strip() if pid_file.exists() else ""
    if text.isdigit():
        qemu_process.kill(int(text), pid_file, _KILL_TIMEOUT)
    child.wait()
    if child.stdout is not None:
        child.stdout.close()


def _explain(code: int, text: str) -> str:
    lines = text.splitlines()[-3:]
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"QEMU refused to start ({how}): {' | '.join(lines) or 'it printed nothing'}"
