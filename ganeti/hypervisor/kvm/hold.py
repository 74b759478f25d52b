"""A guest that is paused for a moment, so that its disks can be copied as they are.

With a guest agent, programs in the guest are asked first to write what they keep in memory
(``guest-fsfreeze-freeze`` of qemu-ga). A guest whose agent does not answer is held without it.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ganeti import errors
from ganeti.base import jsonio
from ganeti.base.clock import Deadline
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor.kvm.runtime import Guest, Store
from ganeti.model.enums import Consistency
from ganeti.net import nbd

if TYPE_CHECKING:
    from ganeti.hypervisor.kvm.qmp import Qmp

log = logging.getLogger(__name__)

#: Seconds for the agent to answer that it is there, and to freeze or thaw the file systems.
_HELLO, _FREEZE = 3.0, 8.0
#: States of QEMU in which a guest runs or is about to.
_RUNS = ("running", "prelaunch")
_MOST_ANSWER = 1024 * 1024


class Agent:
    """A conversation with qemu-ga in a guest. Of its answers only yes or no is trusted."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._read = b""

    @classmethod
    @contextlib.contextmanager
    def connect(cls, path: Path) -> Iterator[Agent]:
        """Find out that somebody answers; HypervisorError."""
        try:
            with (
                nbd.short_address(path) as address,
                socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link,
            ):
                link.settimeout(_HELLO)
                link.connect(address)
                agent = cls(link)
                agent._synchronise()
                yield agent
        except OSError as err:
            raise errors.HypervisorError(f"the guest agent does not answer: {err}") from err

    def _synchronise(self) -> None:
        """Skip what is left of another conversation."""
        token = secrets.randbits(31)
        # The byte ends what the agent may have half read.
        self._send("guest-sync", {"id": token}, before=b"\xff")
        end = Deadline(_HELLO)
        while self._receive(end) != {"return": token}:
            pass

    def ask(self, command: str, seconds: float) -> object:
        """The value that a command returns; HypervisorError when it fails or takes longer."""
        try:
            self._send(command, {})
            answer = self._receive(Deadline(seconds))
        except OSError as err:
            raise errors.HypervisorError(f"the guest agent does not answer {command}") from err
        if not isinstance(answer, dict) or "return" not in answer:
            raise errors.HypervisorError(f"the guest agent refuses {command}: {str(answer)[:200]}")
        return answer["return"]

    def send(self, command: str) -> None:
        """Send a command whose answer nobody waits for."""
        with contextlib.suppress(OSError):
            self._send(command, {})

    def _send(self, command: str, arguments: JsonObject, before: bytes = b"") -> None:
        request = {"execute": command, "arguments": arguments}
        self._link.sendall(before + jsonio.dumps(request).encode() + b"\n")

    def _receive(self, end: Deadline) -> object:
        while b"\n" not in self._read:
            if end.left <= 0 or len(self._read) > _MOST_ANSWER:
                raise TimeoutError
            self._link.settimeout(max(0.05, end.left))
            data = self._link.recv(65536)
            if not data:
                raise ConnectionError("the connection was closed")
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        try:
            return jsonio.loads(line.lstrip(b"\xff"))
        except errors.ParseError as err:
            raise errors.HypervisorError("the guest agent says something unknown") from err


def agent_answers(store: Store, name: str) -> bool:
    """Whether the agent in a guest answers; blocks 3 s at most."""
    try:
        with Agent.connect(store.socket(name, "qga")):
            return True
    except errors.HypervisorError:
        return False


def hold(store: Store, guest: Guest) -> Consistency:
    """Pause a running guest with its writes on its disks; blocks 20 s at most.

    Raises:
        HypervisorError: QEMU does not answer; the guest runs on.
    """
    found = freeze(store, guest)
    try:
        with store.control(guest.runtime.instance.name) as qmp:
            pause(qmp)
    except errors.HypervisorError:
        thaw(store, guest)
        raise
    return found


def freeze(store: Store, guest: Guest) -> Consistency:
    """Freeze the file systems of a guest that has an agent, until :func:`thaw`."""
    if guest.runtime.params.use_guest_agent:
        name = guest.runtime.instance.name
        try:
            with Agent.connect(store.socket(name, "qga")) as agent:
                try:
                    agent.ask("guest-fsfreeze-freeze", _FREEZE)
                except errors.HypervisorError:
                    # it may do it when nobody waits for it any more
                    agent.send("guest-fsfreeze-thaw")
                    raise
            return Consistency.FROZEN
        except errors.HypervisorError as err:
            log.warning("instance %s: %s", name, errors.text(err))
    return Consistency.CRASH


def pause(qmp: Qmp) -> bool:
    """Pause a guest with what it has sent on its disks; whether it ran."""
    runs = qmp.command("query-status")["status"] in _RUNS
    if runs:
        qmp.command("stop")
    return runs


def release(store: Store, guest: Guest) -> None:
    """Let it run on; no error when it runs. HypervisorError when QEMU does not answer."""
    with store.control(guest.runtime.instance.name) as qmp:
        qmp.command("cont")
    thaw(store, guest)


def thaw(store: Store, guest: Guest) -> None:
    """Thaw file systems; those that are not frozen without an error."""
    name = guest.runtime.instance.name
    if not guest.runtime.params.use_guest_agent:
        return
    try:
        with Agent.connect(store.socket(name, "qga")) as agent:
            agent.ask("guest-fsfreeze-thaw", _FREEZE)
    except errors.HypervisorError as err:
        log.warning("file systems of instance %s may still be frozen: %s", name, errors.text(err))
