"""Hooks: the admin's own programs, run before and after operations.

Directory ``<hooks>/<path>-<phase>.d``, files in the order of their names, environment replaced
completely, working directory ``/`` (interface tables, hooks).
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any

from ganeti import errors
from ganeti.base import process
from ganeti.node.context import NodeContext
from ganeti.rpc.calls.hooks import HookCalls
from ganeti.rpc.timing import NORMAL

log = logging.getLogger(__name__)

PHASES = ("pre", "post")
#: Seconds for all hooks of a directory together; less than the master waits for the answer.
TIME_LIMIT = NORMAL - 60
#: Largest output of one hook that is reported, in bytes; the end is kept.
MAX_OUTPUT = 256 * 1024

_SCRIPT = re.compile(r"[a-zA-Z0-9_-]+")
_HOOKS_PATH = re.compile(r"[a-z0-9][a-z0-9-]*")


class HookResult(IntEnum):
    """How a hook ended; the values are on the wire."""

    SKIP = 0
    FAIL = 1
    SUCCESS = 2


class Hooks(HookCalls):
    """Runs hooks on this node."""

    def __init__(self, context: NodeContext, *, time_limit: float = TIME_LIMIT) -> None:
        self._context = context
        self._time_limit = time_limit

    def hooks_runner(self, hpath: str, phase: str, env: dict[str, str]) -> list[list[Any]]:
        """``[<dir>/<script>, code, output]`` for each file; empty when there is no directory.

        Blocks until all have ended, at most 14 minutes; what is not started by then has failed.

        Raises:
            ParameterError: path, phase or environment cannot be used.
            HooksFailure: the directory cannot be read.
        """
        name = _directory_name(hpath, phase)
        _check_environment(env)
        clock = self._context.clock
        end = clock.monotonic() + self._time_limit
        results: list[list[Any]] = []
        for script in _scripts(self._context.paths.hooks / name):
            shown = f"{name}/{script.name}"
            if not _eligible(script):
                results.append([shown, int(HookResult.SKIP), ""])
                continue
            code, output = self._run_one(script, env, end - clock.monotonic())
            if code is HookResult.FAIL:
                log.warning("hook %s failed", shown)
            results.append([shown, int(code), output])
        return results

    def _run_one(self, script: Path, env: Mapping[str, str], left: float) -> tuple[HookResult, str]:
        limit = f"the {self._time_limit:g} s that all hooks of a phase have together are over"
        if left <= 0:
            return HookResult.FAIL, f"not started: {limit}"
        # A file, because it keeps the order of both outputs, and a program that a hook leaves
        # behind cannot hold it open against us.
        with tempfile.NamedTemporaryFile(prefix="hook-", dir=self._context.paths.run) as output:
            try:
                result = process.run(
                    [str(script)], timeout=left, env=env, cwd=Path("/"), log=Path(output.name)
                )
            except errors.CommandError as err:
                return HookResult.FAIL, errors.text(err)
            text = _tail(Path(output.name))
        if result.timed_out:
            return HookResult.FAIL, f"{text}\nkilled: {limit}".strip()
        return (HookResult.SUCCESS if result.ok else HookResult.FAIL), text


def _directory_name(hpath: str, phase: str) -> str:
    if phase not in PHASES:
        raise errors.ParameterError(f"hooks have the phases pre and post, not {phase[:20]!r}")
    if not _HOOKS_PATH.fullmatch(hpath):
        raise errors.ParameterError(f"{hpath[:80]!r} is not a name of a hooks directory")
    return f"{hpath}-{phase}.d"


def _check_environment(env: Mapping[str, str]) -> None:
    for key, value in env.items():
        if not key or "=" in key or "\0" in key or "\0" in value:
            raise errors.ParameterError(f"the hook variable {key[:80]!r} cannot be set")


def _scripts(directory: Path) -> list[Path]:
    """Files of a hooks directory in the order of their names, without hidden ones."""
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return []
    except OSError as err:
        raise errors.HooksFailure(f"cannot read {directory}: {err.strerror}") from err
    return [directory / name for name in names if not name.startswith(".")]


def _eligible(script: Path) -> bool:
    return bool(_SCRIPT.fullmatch(script.name) and script.is_file() and os.access(script, os.X_OK))


def _tail(path: Path) -> str:
    size = path.stat().st_size
    with path.open("rb") as stream:
        stream.seek(max(0, size - MAX_OUTPUT))
        text = stream.read().decode("utf-8", "replace").strip()
    return text if size <= MAX_OUTPUT else f"[{size - MAX_OUTPUT} bytes left out]\n{text}"
