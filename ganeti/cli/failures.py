"""Errors as lines for people and exit codes for scripts.

The reason comes first. The form that Ganeti has, with lines of its own before the reason, is
for scripts that parse it: the environment variable ``GANETI_ERRORS=classic`` or ``--debug``
asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ganeti import constants, errors


class Exit(Exception):
    """End the command now with an exit code; its message has been printed already."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class NodeSetupError(errors.GenericError):
    """A new node could not be prepared for the cluster."""

    exit_code = constants.EXIT_NODESETUP_ERROR


def exit_code(err: errors.GanetiError) -> int:
    """Exit code of a command that ends with this error."""
    return err.exit_code


def lines(err: errors.GanetiError, *, debug: int = 0) -> list[str]:
    """The lines to print for an error; without the details of a bug."""
    text = errors.text(err)
    if isinstance(err, errors.HooksAbort):
        return _hooks(err.args)
    if isinstance(err, errors.ResolverError):
        return [
            f"Failure: can't resolve hostname '{err.args[0] if err.args else '?'}'{_reason(err)}"
        ]
    if isinstance(err, errors.JobQueueFull) and not err.args:
        return [
            "Failure: the job queue is full; archive old jobs (gnt-job autoarchive) and try again"
        ]
    for kind, head in _HEADS:
        if isinstance(err, kind):
            return f"{head}{text}".splitlines()
    if isinstance(err, errors.ParameterError):
        return [_parameter(text)]
    if isinstance(err, errors.QuorumError):
        return f"Failure: {text}".splitlines()
    if isinstance(err, errors.NoMasterError | NodeSetupError):
        return text.splitlines()
    if debug or os.environ.get("GANETI_ERRORS") == "classic":
        return _classic_lines(err, text)
    return text.splitlines()


def _classic_lines(err: errors.GanetiError, text: str) -> list[str]:
    """The lines of Ganeti for the errors that it has a heading for."""
    if isinstance(err, errors.OpPrereqError):
        result = ["Failure: prerequisites not met for this operation:"]
        if len(err.args) > 1:
            result.append(f"error type: {err.args[1]}, error details:")
        return result + text.splitlines()
    if isinstance(err, _FROM_NODES):
        return ["Failure: command execution error:", *text.splitlines()]
    return f"{_UNHANDLED}{text}".splitlines()


#: An operation that could not do its work, and what nodes say of that.
_FROM_NODES = (
    errors.OpExecError,
    errors.BlockDeviceError,
    errors.FileStoragePathError,
    errors.HypervisorError,
    errors.RpcError,
    errors.StorageError,
)

_UNHANDLED = "Unhandled Ganeti error: "
#: Words before the text of an error.
_HEADS: tuple[tuple[type[errors.GanetiError], str], ...] = (
    (errors.HooksFailure, "Failure: hooks general failure: "),
    (errors.TypeEnforcementError, "Parameter Error: "),
    (errors.QueryFilterParseError, "Failure: "),
    (errors.FileError, "Failure: "),
    (errors.ConfigurationError, "Corrupt configuration file: "),
    (errors.ProgrammerError, _UNHANDLED),
)


def _parameter(text: str) -> str:
    if " " in text:
        return f"Parameter Error: {text}"
    return f"Failure: unknown/wrong parameter name '{text}'"


def _reason(err: errors.ResolverError) -> str:
    return f": {err.args[2]}" if len(err.args) > 2 and err.args[2] else ""


def _hooks(args: Sequence[Any]) -> list[str]:
    result = ["Failure: hooks execution failed:"]
    for node, script, output in args[0] if args else ():
        if output:
            result.append(f"  node: {node}, script: {script}, output: {output}")
        else:
            result.append(f"  node: {node}, script: {script} (no output)")
    return result
