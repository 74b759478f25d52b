"""The end of a helper guest: waiting for it, and whether it has done its work."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from ganeti import errors
from ganeti.base import files
from ganeti.base.clock import Clock, Deadline
from ganeti.guest_os import helper, scripts
from ganeti.node.console_output import ConsoleOutput
from ganeti.node.context import NodeContext
from ganeti.rpc.objects import NodeInstance

#: Seconds between two checks whether the master still asks.
_PAUSE: Final = 2.0


class Times(NamedTuple):
    """How long a helper guest may take."""

    #: seconds until it must have begun; None: it need not tell
    startup: int | None
    #: seconds until it must have ended, after these
    work: int


def wait(
    process: int | None,
    console: ConsoleOutput,
    times: Times,
    look: Callable[[], None],
    clock: Clock,
) -> bool:
    """Wait for the end of a process; False when it does not begin or end in time.

    ``look`` is called all the time, and what it raises ends the wait.
    """
    if process is None:
        return True
    try:
        fd = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        if times.startup is not None:
            if _ends_within(fd, Deadline(times.startup, clock), look):
                return True
            if not helper.read_result(console.read()).began:
                return False
        return _ends_within(fd, Deadline(times.work, clock), look)
    finally:
        os.close(fd)


def _ends_within(fd: int, deadline: Deadline, look: Callable[[], None]) -> bool:
    while True:
        left = deadline.left
        if select.select([fd], [], [], min(left, _PAUSE))[0]:
            return True
        if not left:
            return False
        look()


def judge(
    kind: str,
    instance: NodeInstance,
    text: str,
    times: Times,
    context: NodeContext,
    *,
    in_time: bool,
) -> None:
    """Keep in a log what a guest printed; OpExecError unless it has done its work."""
    log_file = scripts.make_log(kind, instance, context.paths, clock=context.clock)
    try:
        log_file.write_text(text, encoding="utf-8")
    except OSError as err:
        raise files.failure(err) from err
    _judge(instance.name, helper.read_result(text), log_file, times, in_time=in_time)


def _judge(
    name: str, result: helper.Result, log_file: Path, times: Times, *, in_time: bool
) -> None:
    if in_time and result.code == 0:
        return
    if in_time and result.code is not None:
        what = f"failed with exit code {result.code}"
    elif in_time:
        what = "ended without printing an exit code"
    elif result.began:
        what = f"did not end within {times.work} s, and was ended"
    else:
        what = f"did not begin within {times.startup} s, and was ended"
    tail = scripts.read_tail(log_file)
    raise errors.OpExecError(
        f"the helper guest of instance {name} {what};"
        + (f" the last lines of its log {log_file}:\n{tail}" if tail else f" {log_file} is empty")
    )
