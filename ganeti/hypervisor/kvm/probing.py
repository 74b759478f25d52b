"""Whether a guest on QEMU's own network accepts a TCP connection.

QEMU accepts for a forwarded port at once, and connects to the guest only then. So a connection to
QEMU means nothing; in which state the other half is, ``info usernet`` tells::

    Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ
    TCP[SYN_SENT]       8       127.0.0.1 37059       10.9.8.77    22     0     0
    TCP[HOST_FORWARD]   3       127.0.0.1 37059       10.9.8.77    22     0     0
"""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ganeti import errors
from ganeti.base.clock import SYSTEM
from ganeti.hypervisor.kvm import devices
from ganeti.hypervisor.kvm.runtime import Guest, Store

if TYPE_CHECKING:
    from ganeti.hypervisor.kvm.qmp import Qmp

_LOOPBACK = "127.0.0.1"
_LINE = re.compile(r"^\s*TCP\[(\w+)\]\s+\d+\s+(\S+)\s+(\d+)\s+(\S+)\s+(\d+)\s", re.MULTILINE)
_FORWARD, _ASKED = "HOST_FORWARD", "SYN_SENT"
#: Seconds for one attempt: QEMU asks a guest that does not answer yet more and more seldom.
_ATTEMPT = 5.0


def find_forward(text: str, port: int) -> int | None:
    """The port of the node that QEMU forwards to a port of the guest. Pure."""
    for state, _source, here, _guest, there in _LINE.findall(text):
        if state == _FORWARD and int(there) == port:
            return int(here)
    return None


def is_accepted(text: str, forward: int) -> bool:
    """Whether the guest has answered a connection to a forwarded port. Pure."""
    return any(
        int(here) == forward and state not in (_FORWARD, _ASKED)
        for state, _source, here, _guest, _there in _LINE.findall(text)
    )


@contextlib.contextmanager
def make_port_probe(store: Store, guest: Guest, port: int) -> Iterator[Callable[[], bool]]:
    """See :meth:`ganeti.hypervisor.abilities.Probing.make_port_probe`."""
    instance = guest.runtime.instance
    if not instance.nics:
        raise errors.HypervisorError(
            f"instance {instance.name} has no NIC, so no port of it can answer"
        )
    network = devices.device_id("net", instance.nics[0].uuid)
    with store.control(instance.name) as qmp:
        reply = _ask(qmp, f"hostfwd_add {network} tcp:{_LOOPBACK}:0-:{port}")
        forward = find_forward(_ask(qmp, "info usernet"), port)
    if forward is None:
        raise errors.HypervisorError(f"QEMU does not forward to port {port}: {reply.strip()}")
    probe = _Probe(store, instance.name, forward)
    try:
        yield probe.has_answered
    finally:
        probe.close()


def _ask(qmp: Qmp, line: str) -> str:
    return str(qmp.command("human-monitor-command", {"command-line": line}))


class _Probe:
    """One connection after the other, until the guest accepts one."""

    def __init__(self, store: Store, name: str, forward: int) -> None:
        self._store, self._name, self._forward = store, name, forward
        self._link: socket.socket | None = None
        self._begun = 0.0

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def has_answered(self) -> bool:
        if self._link is not None:
            with self._store.control(self._name) as qmp:
                if is_accepted(_ask(qmp, "info usernet"), self._forward):
                    return True
        now = SYSTEM.monotonic()
        if self._link is None or self._is_refused() or now - self._begun > _ATTEMPT:
            self.close()
            self._begun = now
            with contextlib.suppress(OSError):
                self._link = socket.create_connection((_LOOPBACK, self._forward), _ATTEMPT)
                self._link.setblocking(False)
        return False

    def _is_refused(self) -> bool:
        """Whether QEMU has closed it, as it does when the guest refuses."""
        assert self._link is not None
        try:
            return not self._link.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
