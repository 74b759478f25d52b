"""Hooks: the admin's own programs, run before and after operations.

Directory ``<hooks>/<path>-<phase>.d``, files in the order of their names, environment replaced
completely, working directory ``/``. Scripts of administrators rely on that.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from ganeti import errors
from ganeti.base import run_parts
from ganeti.node.context import NodeContext
from ganeti.rpc.calls.hooks import HookCalls
from ganeti.rpc.timing import NORMAL

log = logging.getLogger(__name__)

PHASES = ("pre", "post")
#: Seconds for all hooks of a directory together; less than the master waits for the answer.
TIME_LIMIT = NORMAL - 60

_HOOKS_PATH = re.compile(r"[a-z0-9][a-z0-9-]*")


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
        paths = self._context.paths
        results: list[list[Any]] = []
        for outcome in run_parts.run(
            paths.hooks / name,
            env,
            limit=self._time_limit,
            clock=self._context.clock,
            scratch=paths.run,
        ):
            if outcome.result is run_parts.Result.FAIL:
                log.warning("hook %s failed", outcome.name)
            results.append([outcome.name, int(outcome.result), outcome.output])
        return results


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
