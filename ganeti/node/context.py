"""Context of all handlers of node calls: paths, drivers, the cluster's facts, locks, the stop."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ganeti import errors
from ganeti.base import files
from ganeti.base.clock import SYSTEM, Clock
from ganeti.hypervisor.interface import Hypervisor
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model import ssconf_keys
from ganeti.node.term import Term
from ganeti.paths import Paths

#: Seconds a call waits for another call on the same instance.
INSTANCE_WAIT = 300.0

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def check_name(name: str) -> str:
    """An instance name that can be part of a file name; ParameterError otherwise."""
    if not _NAME.fullmatch(name) or len(name) > 255:
        raise errors.ParameterError(f"{name[:80]!r} is not an instance name")
    return name


class NamedLocks:
    """One mutex per name; a name that nobody uses costs nothing."""

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._held: dict[str, tuple[str, float]] = {}

    @contextmanager
    def hold(self, name: str, purpose: str, timeout: float) -> Iterator[None]:
        """Hold the mutex of a name; waits up to ``timeout`` seconds.

        Raises:
            LockError: it was not free in time; the text says who has it and since when.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: name not in self._held, timeout):
                holder, since = self._held[name]
                age = self._clock.monotonic() - since
                raise errors.LockError(
                    f"{purpose} of {name} was not begun: on this node, {holder} of it has been"
                    f" running for {age:.0f} s"
                )
            self._held[name] = (purpose, self._clock.monotonic())
        try:
            yield
        finally:
            with self._changed:
                del self._held[name]
                self._changed.notify_all()


class NodeContext:
    """Shared by all handlers of one node daemon; thread-safe."""

    def __init__(
        self,
        paths: Paths,
        name: str,
        *,
        stopping: threading.Event | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self.paths = paths
        #: Name of this node.
        self.name = name
        self.clock = clock
        #: Set when the daemon shall end; a handler that waits must watch it.
        self.stopping = threading.Event() if stopping is None else stopping
        #: Called after ssconf files were written.
        self.on_ssconf: Callable[[], None] = lambda: None
        #: Called after the certificates of this node or of its authorities were replaced.
        self.on_certificates: Callable[[], None] = lambda: None
        #: Called when this node has left its cluster and the daemon shall end.
        self.on_leave: Callable[[], None] = self.stopping.set
        #: The master terms this node has seen.
        self.term = Term(paths)
        self._locks = NamedLocks(clock)
        self._hypervisors: dict[str, Hypervisor] = {}
        self._hypervisors_lock = threading.Lock()

    def hypervisor(self, name: str) -> Hypervisor:
        """The driver of a hypervisor, made on first use; ParameterError for an unknown name."""
        with self._hypervisors_lock:
            found = self._hypervisors.get(name)
            if found is None:
                found = HYPERVISORS.get(name)(self.paths)
                self._hypervisors[name] = found
            return found

    def ssconf(self, key: str) -> str | None:
        """Content of an ssconf file without the newline at its end, None when there is none."""
        try:
            return files.read_text(self.paths.ssconf(key)).rstrip("\n")
        except FileNotFoundError:
            return None

    def read_master(self) -> str:
        """Name of the master according to ssconf; empty without one."""
        return self.ssconf(ssconf_keys.MASTER_NODE) or ""

    @contextmanager
    def instance(self, name: str, purpose: str, *, wait: float | None = None) -> Iterator[None]:
        """Serialise what changes one instance; waits up to five minutes, or ``wait`` seconds.

        Raises:
            LockError: another call on the instance did not end in time.
            ParameterError: this cannot be the name of an instance.
        """
        with self._locks.hold(check_name(name), purpose, INSTANCE_WAIT if wait is None else wait):
            yield
