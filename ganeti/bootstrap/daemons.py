"""Starting and stopping the daemons of this node by hand."""

from __future__ import annotations

import os
import signal
import sys

from ganeti import constants, errors
from ganeti.base import daemon, process
from ganeti.paths import Paths

_MODULES = {
    constants.NODED: "ganeti.node.daemon",
    constants.MASTERD: "ganeti.master.daemon",
    constants.RAPI: "ganeti.rapi.daemon",
}

#: Seconds until a daemon must say that it is ready.
START_TIMEOUT = 60.0


def argv(name: str) -> list[str]:
    """Command line of a daemon with the interpreter that runs this program."""
    return [sys.executable, "-m", _MODULES[name]]


def start(name: str, paths: Paths, *options: str) -> None:
    """Start a daemon unless it runs; returns when it serves requests.

    Raises:
        OpExecError: it did not start; the text is its own.
    """
    if daemon.running_pid(paths.pid_file(name)) is not None:
        return
    result = process.run([*argv(name), *options], timeout=START_TIMEOUT, env=dict(os.environ))
    if not result.ok:
        text = (result.stderr or result.stdout).strip() or result.explain()
        raise errors.OpExecError(text)


def start_master(paths: Paths, *options: str) -> list[str]:
    """Start the daemons of the master with options for the first; returns when all serve.

    Returns a text for each daemon without which the cluster works as well and that did not start.

    Raises:
        OpExecError: the master daemon did not start; the text is its own.
    """
    start(constants.MASTERD, paths, *options)
    try:
        start(constants.RAPI, paths)
    except errors.OpExecError as err:
        return [f"The remote API does not run: {errors.text(err)}"]
    return []


def stop_master(paths: Paths) -> None:
    """Stop the daemons of the master, the last started first."""
    for name in (constants.RAPI, constants.MASTERD):
        stop(name, paths)


def stop(name: str, paths: Paths, timeout: float = 90.0) -> bool:
    """Stop a daemon and wait for its end; killed after ``timeout`` seconds.

    Returns whether it ran.
    """
    pid = daemon.running_pid(paths.pid_file(name))
    if pid is None:
        return False
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return False
    if not process.wait_exit(pid, timeout):
        os.kill(pid, signal.SIGKILL)
        process.wait_exit(pid, 10.0)
    return True
