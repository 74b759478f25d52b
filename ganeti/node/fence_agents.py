"""Runs the programs of Debian's package ``fence-agents``, which switch other hosts off.

An agent reads its parameters from standard input, one ``name=value`` a line, so that passwords are
in no list of processes. They are in ``/etc/ganeti/fence/<node>``, which only root may read. The
action comes from here. Source: the API of fence agents (ClusterLabs, ``FenceAgentAPI.md``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from ganeti import errors
from ganeti.base import files, process, programs
from ganeti.paths import Paths

ACTIONS: Final = ("off", "status")
_AGENT = re.compile(r"fence_[a-z0-9_]{1,50}")
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
#: Exit code of ``status`` for a host that is off.
_OFF: Final = 2
#: Seconds that an agent gets for a check of its set-up, and agents that run at a time.
_CHECK_TIME = 20
_PARALLEL = 8


def run(paths: Paths, agent: str, action: str, node: str, timeout: int) -> str:
    """``off`` switches a host off and returns an empty text; ``status`` returns ``on`` or ``off``.

    Raises:
        ParameterError: agent, action, node or the file with parameters cannot be used.
        CommandError: the agent failed, or took longer than ``timeout`` seconds.
    """
    if action not in ACTIONS:
        raise errors.ParameterError(f"{action[:40]!r} is not an action of a fence agent")
    program = _find(paths, agent)
    text = f"{_read_parameters(paths, node)}\naction={action}\n"
    done = process.run([str(program)], timeout=timeout, input=text.encode("utf-8"))
    if action == "status" and done.code == _OFF and not done.timed_out:
        return "off"
    if not done.ok:
        raise errors.CommandError(done.explain())
    return "on" if action == "status" else ""


def find_flaws(paths: Paths, pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return the problems of fence agents, given as ``(agent, node)``; asks each for the status.

    Blocks until all have answered, at most 20 s for eight of them.
    """

    def check(pair: tuple[str, str]) -> str:
        agent, node = pair
        try:
            run(paths, agent, "status", node, _CHECK_TIME)
        except errors.GanetiError as err:
            return f"{agent} for node {node}: {errors.text(err)}"
        return ""

    with ThreadPoolExecutor(_PARALLEL) as pool:
        return [flaw for flaw in pool.map(check, pairs) if flaw]


def _find(paths: Paths, agent: str) -> Path:
    if not _AGENT.fullmatch(agent):
        raise errors.ParameterError(f"{agent[:60]!r} is not the name of a fence agent")
    directories = paths.fence_agent_search_path
    program = programs.find(agent, directories)
    if program is None:
        where = " or ".join(map(str, directories))
        raise errors.ParameterError(
            f"there is no {agent} in {where}; Debian has it in the package fence-agents"
        )
    if (why := programs.flaw(str(program))) is not None:
        raise errors.ParameterError(why)
    return program


def _read_parameters(paths: Paths, node: str) -> str:
    """The lines of the administrator's file for a node."""
    if not _NODE.fullmatch(node):
        raise errors.ParameterError(f"{node[:80]!r} is not a node name")
    path = paths.fence_parameters / node
    try:
        facts = os.stat(path)
        text = files.read_text(path)
    except FileNotFoundError:
        raise errors.ParameterError(
            f"{path} is missing: write the parameters of the agent into it, one name=value a line"
        ) from None
    except OSError as err:
        raise errors.ParameterError(f"{path} cannot be read: {err.strerror}") from err
    if facts.st_mode & 0o077:
        raise errors.ParameterError(
            f"{path} has passwords and can be read by others than root: chmod 600 {path}"
        )
    lines = [line.strip() for line in text.splitlines()]
    used = [line for line in lines if line and not line.startswith("#")]
    for number, line in enumerate(used, 1):
        name, found, _value = line.partition("=")
        if not found or not re.fullmatch(r"[A-Za-z0-9_-]+", name) or name in ("action", "option"):
            # the line itself may be a password
            raise errors.ParameterError(
                f"entry {number} of {path} is not name=value, or sets the action"
            )
    return "\n".join(used)
