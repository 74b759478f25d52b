"""Running all programs of a directory, as hooks are: in the order of their names, one by one.

Only executable files whose names consist of letters, digits, ``_`` and ``-`` run; hidden files do
not exist. run-parts(8) does the same.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from ganeti import errors
from ganeti.base import process
from ganeti.base.clock import Clock

#: Largest output of one program that is reported, in bytes; the end is kept.
MAX_OUTPUT = 256 * 1024

_PROGRAM = re.compile(r"[a-zA-Z0-9_-]+")


class Result(IntEnum):
    """How a program ended; for hooks the values are on the wire."""

    SKIP = 0
    FAIL = 1
    SUCCESS = 2


@dataclass(frozen=True)
class Outcome:
    """The result of one file of the directory."""

    #: ``<directory>/<file>``
    name: str
    result: Result
    #: standard output and errors in their order, or why it did not run
    output: str


def run(
    directory: Path, env: Mapping[str, str], *, limit: float, clock: Clock, scratch: Path
) -> Iterator[Outcome]:
    """Run the programs of a directory, in ``/`` and with this environment only.

    All have ``limit`` seconds together; what is not started by then has failed. ``scratch`` is a
    directory for their output. A directory that does not exist is an empty one.

    Raises:
        HooksFailure: the directory cannot be read.
    """
    end = clock.monotonic() + limit
    for script in _files(directory):
        name = f"{directory.name}/{script.name}"
        if not _eligible(script):
            yield Outcome(name, Result.SKIP, "")
            continue
        yield Outcome(name, *_run_one(script, env, limit, end - clock.monotonic(), scratch))


def _run_one(
    script: Path, env: Mapping[str, str], limit: float, left: float, scratch: Path
) -> tuple[Result, str]:
    reason = f"the {limit:g} s that all hooks of a phase have together are over"
    if left <= 0:
        return Result.FAIL, f"not started: {reason}"
    # A file, because it keeps the order of both outputs, and a program that a hook leaves
    # behind cannot hold it open against us.
    with tempfile.NamedTemporaryFile(prefix="hook-", dir=scratch) as output:
        try:
            result = process.run(
                [str(script)], timeout=left, env=env, cwd=Path("/"), log=Path(output.name)
            )
        except errors.CommandError as err:
            return Result.FAIL, errors.text(err)
        text = _tail(Path(output.name))
    if result.timed_out:
        return Result.FAIL, f"{text}\nkilled: {reason}".strip()
    return (Result.SUCCESS if result.ok else Result.FAIL), text


def _files(directory: Path) -> list[Path]:
    """Files of the directory in the order of their names, without hidden ones."""
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return []
    except OSError as err:
        raise errors.HooksFailure(f"cannot read {directory}: {err.strerror}") from err
    return [directory / name for name in names if not name.startswith(".")]


def _eligible(script: Path) -> bool:
    return bool(_PROGRAM.fullmatch(script.name) and script.is_file() and os.access(script, os.X_OK))


def _tail(path: Path) -> str:
    size = path.stat().st_size
    with path.open("rb") as stream:
        stream.seek(max(0, size - MAX_OUTPUT))
        text = stream.read().decode("utf-8", "replace").strip()
    return text if size <= MAX_OUTPUT else f"[{size - MAX_OUTPUT} bytes left out]\n{text}"
