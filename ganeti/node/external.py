"""Programs that others provide and the master has run: allocators, helpers, commands."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from ganeti import errors
from ganeti.base import process, programs
from ganeti.base.json_types import JsonObject
from ganeti.node import fence_agents, restricted
from ganeti.node.context import NodeContext
from ganeti.rpc.calls.external import ExternalCalls

#: Seconds an allocator gets.
ALLOCATOR_TIME = 600.0
OOB_LONGEST = 840

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_OPTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_OOB_COMMANDS = ("health", "power-cycle", "power-off", "power-on", "power-status")


class External(ExternalCalls):
    """Runs such programs on this node."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context

    def iallocator_runner(
        self, name: str, idata: str, default_iallocator_params: JsonObject
    ) -> str:
        """Run an allocator from the search path: options, then a file with the request.

        Raises:
            ParameterError: name or options cannot be used.
            CommandError: it is not there, failed or took too long; with its own words.
        """
        program = self._find(name)
        options = [_option(key, value) for key, value in default_iallocator_params.items()]
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", prefix="iallocator-", dir=self._context.paths.run
        ) as file:
            file.write(idata)
            file.flush()
            result = process.run([str(program), *options, file.name], timeout=ALLOCATOR_TIME)
        if not result.ok:
            raise errors.CommandError(f"{result.explain()}; {result.stdout.strip()[-400:]}")
        return result.stdout

    def _find(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise errors.ParameterError(f"{name[:80]!r} cannot be the name of an allocator")
        program = programs.find(name, self._context.paths.iallocator_search_path)
        if program is not None:
            return program
        where = " or ".join(map(str, self._context.paths.iallocator_search_path))
        raise errors.CommandError(
            f"there is no allocator '{name}': an executable file of that name must be in"
            f" {where} on the master node"
        )

    def run_oob(self, oob_program: str, command: str, remote_node: str, timeout: int) -> str:
        """Run the administrator's out-of-band program: ``<program> <command> <node>``.

        Raises:
            ParameterError: command, node or program cannot be used.
            CommandError: it failed or took longer than ``timeout`` seconds.
        """
        if command not in _OOB_COMMANDS:
            raise errors.ParameterError(f"{command[:40]!r} is not an out-of-band command")
        if not _NAME.fullmatch(remote_node):
            raise errors.ParameterError(f"{remote_node[:80]!r} is not a node name")
        if (why := programs.flaw(oob_program)) is not None:
            raise errors.ParameterError(f"the out-of-band program {why} (on the master node)")
        if not 0 < timeout <= OOB_LONGEST:
            raise errors.ParameterError(f"the time-out must be 1 to {OOB_LONGEST} s")
        result = process.run([oob_program, command, remote_node], timeout=timeout)
        if not result.ok:
            raise errors.CommandError(result.explain())
        return result.stdout

    def run_fence_agent(self, agent: str, action: str, remote_node: str, timeout: int) -> str:
        """See :func:`fence_agents.run`."""
        if not 0 < timeout <= OOB_LONGEST:
            raise errors.ParameterError(f"the time-out must be 1 to {OOB_LONGEST} s")
        return fence_agents.run(self._context.paths, agent, action, remote_node, timeout)

    def restricted_command(self, cmd: str) -> str:
        """See :func:`restricted.run`."""
        return restricted.run(self._context.paths, cmd)


def _option(key: str, value: object) -> str:
    if not _OPTION.fullmatch(key):
        raise errors.ParameterError(f"{key[:40]!r} cannot be an option of an allocator")
    return f"--{key}" if value is None else f"--{key}={value}"
