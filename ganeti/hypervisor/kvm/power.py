"""Ending a guest: by its power button, by QEMU's own end, by force; every step is bounded."""

from __future__ import annotations

import logging

from ganeti import errors
from ganeti.base import process
from ganeti.base.clock import Deadline
from ganeti.hypervisor.kvm import qemu_process
from ganeti.hypervisor.kvm.runtime import Store, qmp_timeout

log = logging.getLogger(__name__)

#: Seconds after which the power button is pressed again: a guest that boots does not see it.
_PRESS_AGAIN = 5.0
#: Seconds for QEMU to end by itself when told to, and to die when killed.
_QUIT_TIMEOUT = 5.0
KILL_TIMEOUT = 10.0


def press(store: Store, name: str, pid: int, timeout: float) -> None:
    """Press the power button until the guest ends; ``timeout`` seconds at most.

    Raises:
        HypervisorError: QEMU runs but cannot be told.
    """
    end = Deadline(timeout)
    while True:
        # However long the caller waits, a QEMU that does not answer is reported soon.
        limit = min(qmp_timeout(), max(1.0, end.left))
        if not _send(store, name, pid, "system_powerdown", limit):
            return
        left = end.left
        if process.wait_exit(pid, min(left, _PRESS_AGAIN)) or left <= _PRESS_AGAIN:
            return


def end(store: Store, name: str, pid: int) -> None:
    """Tell QEMU to flush the disks and end; kill it when it does not.

    Raises:
        HypervisorError: it does not even die.
    """
    try:
        _send(store, name, pid, "quit", _QUIT_TIMEOUT)
        if process.wait_exit(pid, _QUIT_TIMEOUT):
            return
        log.warning("QEMU of instance %s does not end; it is killed", name)
    except errors.HypervisorError as err:
        log.warning("QEMU of instance %s is killed: %s", name, err)
    kill(store, name, pid)


def kill(store: Store, name: str, pid: int) -> None:
    """Kill QEMU, which loses what the guest has not flushed; HypervisorError as :func:`end`."""
    if not qemu_process.kill(pid, store.pid_file(name), KILL_TIMEOUT):
        raise errors.HypervisorError(
            f"QEMU of instance {name} (process {pid}) does not die within {KILL_TIMEOUT:g} s;"
            " it probably waits for a disk that does not answer"
        )


def _send(store: Store, name: str, pid: int, command: str, timeout: float) -> bool:
    """Send a command; False when QEMU ended meanwhile."""
    try:
        with store.control(name, timeout) as qmp:
            qmp.command(command)
    except errors.HypervisorError:
        if process.wait_exit(pid, 0):
            return False
        raise
    return True
