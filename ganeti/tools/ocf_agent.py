"""Frame of the resource agents of Pacemaker: actions, exit codes, time-outs, meta-data.

Source: *Open Cluster Framework Resource Agent API*, version 1.1 (ClusterLabs, ``OCF-spec``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from ganeti import errors, paths
from ganeti.base import files, services
from ganeti.base.clock import Deadline
from ganeti.paths import Paths

_API: Final = "1.1"
#: Variable with the time-out of an action in milliseconds.
_TIMEOUT: Final = "OCF_RESKEY_CRM_meta_timeout"
#: Part of the time-out that an action may use: it must end before Pacemaker ends it.
_SHARE: Final = 0.9


class Code(IntEnum):
    """Exit codes; 2, 4 and 5 keep Pacemaker from this node, 6 from all nodes."""

    SUCCESS = 0
    GENERIC = 1
    ARGS = 2
    UNIMPLEMENTED = 3
    PERMISSION = 4
    INSTALLED = 5
    CONFIGURED = 6
    NOT_RUNNING = 7


class Refusal(Exception):
    """An action ends with an exit code and a reason, which ``crm_mon`` shows."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Request:
    """One call of an agent."""

    #: when the action must have ended
    end: Deadline
    where: Paths = field(default_factory=paths.current)

    def count_stop_time(self) -> float:
        """Seconds until a daemon that does not end is killed."""
        return min(services.STOP_TIMEOUT, self.end.left / 2)


Action = Callable[[Request], Code]


@dataclass(frozen=True)
class Agent:
    """A resource agent. Its actions can be repeated, and end before the time-out."""

    name: str
    title: str
    about: str
    start: Action
    stop: Action
    monitor: Action
    #: raises Refusal where the agent cannot be used
    validate: Callable[[Request], None]
    #: time-outs in seconds, by action
    timeouts: Mapping[str, int]
    #: seconds between two runs of monitor
    interval: int
    #: whether several nodes may have the resource at the same time
    for_clones: bool = False


def run(agent: Agent, argv: Sequence[str] | None = None) -> int:
    """Do the action of the command line; the exit code."""
    words = sys.argv[1:] if argv is None else argv
    if words == ["meta-data"]:
        print(describe(agent), end="")
        return Code.SUCCESS
    actions: dict[str, Action] = {
        "start": agent.start,
        "stop": agent.stop,
        "monitor": agent.monitor,
        "validate-all": lambda _request: Code.SUCCESS,
    }
    if len(words) != 1 or words[0] not in actions:
        print(f"usage: {agent.name} {'|'.join((*actions, 'meta-data'))}", file=sys.stderr)
        return Code.UNIMPLEMENTED if len(words) == 1 else Code.ARGS
    action = words[0]
    try:
        request = Request(Deadline(_SHARE * _read_timeout(agent, action)))
        _check(agent)
        if action in ("start", "validate-all"):
            agent.validate(request)
        return actions[action](request)
    except Refusal as err:
        code, text = err.code, str(err)
    except errors.GanetiError as err:
        code, text = Code.GENERIC, errors.text(err)
    except OSError as err:
        code, text = Code.GENERIC, errors.text(files.failure(err))
    say(f"ocf-exit-reason:{text}")
    return code


def say(text: str) -> None:
    """Write a line that Pacemaker logs."""
    print(text, file=sys.stderr, flush=True)


def _read_timeout(agent: Agent, action: str) -> float:
    text = os.environ.get(_TIMEOUT)
    if text is None:
        return agent.timeouts[action]
    if not text.isdecimal() or int(text) == 0:
        raise Refusal(Code.ARGS, f"{_TIMEOUT} is {text[:40]!r}, not a number of milliseconds")
    return int(text) / 1000


def _check(agent: Agent) -> None:
    if os.geteuid() != 0 and not paths.is_rooted():
        raise Refusal(Code.PERMISSION, f"{agent.name} needs root")
    if "OCF_RESKEY_CRM_meta_clone" in os.environ and not agent.for_clones:
        raise Refusal(
            Code.CONFIGURED, f"the resource is a clone, and one node at a time has {agent.name}"
        )


def describe(agent: Agent) -> str:
    """The meta-data of an agent, as XML. Pure."""
    name = quoteattr(agent.name)
    lines = ['<?xml version="1.0"?>', '<!DOCTYPE resource-agent SYSTEM "ra-api-1.dtd">']
    lines += [f'<resource-agent name={name} version="1.0">']
    lines += [f"<version>{_API}</version>"]
    lines += [f'<longdesc lang="en">{escape(agent.about)}</longdesc>']
    lines += [f'<shortdesc lang="en">{escape(agent.title)}</shortdesc>']
    lines += ["<parameters/>", "<actions>"]
    for action, seconds in agent.timeouts.items():
        more = f' interval="{agent.interval}s" depth="0"' if action == "monitor" else ""
        lines.append(f'<action name="{action}" timeout="{seconds}s"{more}/>')
    return "\n".join([*lines, "</actions>", "</resource-agent>", ""])
