"""The leases of all nodes as the master sees them, and which node is silent.

All node calls renew them; :mod:`ganeti.recovery.master` decides. There are leases while
``auto_fence_after`` of the cluster is set, and they are so long.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from ganeti.base.clock import SYSTEM, Clock
from ganeti.config.store import Store
from ganeti.model.ids import NodeUuid
from ganeti.ops.services import LeaseEnd
from ganeti.recovery import bounds
from ganeti.recovery.lease import Grant, Granted, Stamp
from ganeti.recovery.master import (
    LONGEST_BOOT,
    Answered,
    Fence,
    FenceEnded,
    MasterMachine,
    Settings,
    Tick,
    Watched,
)


@dataclass(frozen=True, slots=True)
class View:
    """The state of a node that the master calls; all times in seconds from now."""

    #: since the node was called that answered
    silence: float | None
    #: until its lease is over if it is not renewed; None: it has none
    lease_left: float | None
    #: the node has said that its watchdog is on
    watchdog: bool
    #: until it is fenced if it stays silent; None: it is not fenced by itself
    fenced_in: float | None
    #: it has not answered this master, and both servers may have got power at the same time
    may_boot: bool


class NodeLeases:
    """Implements :class:`ganeti.rpc.leases.Granting`. Thread-safe."""

    def __init__(
        self, store: Store, count_left: Callable[[], float | None], clock: Clock = SYSTEM
    ) -> None:
        """``count_left``: how long this master may act, None for endless."""
        self._store = store
        self._count_left = count_left
        self._clock = clock
        self._lock = threading.Lock()
        self._machine = MasterMachine(
            Settings(),
            contact=clock.monotonic(),
            booting_until=LONGEST_BOOT,  # the clock begins with the boot of this server
        )
        self._held_back: Counter[NodeUuid] = Counter()
        self._stops = False

    def now(self) -> float:
        return self._clock.monotonic()

    # node calls --------------------------------------------------------------------------------

    def grant(self, node: NodeUuid) -> Grant | None:
        left = self._count_left()
        if left is not None and left <= 0:
            return None
        with self._lock:
            if self._held_back[node]:
                return None
            self._find(node)
            self._update()
            given = self._machine.grant(node, self.now())
        device = self._find_watchdog(node)
        return Grant(given.stamp, given.seconds, device) if given is not None else None

    def hear(self, node: NodeUuid, sent: float, stamp: Stamp | None) -> None:
        with self._lock:
            self._find(node)
            self._machine.feed(Answered(sent, node, stamp, self.now()))

    def _find(self, node: NodeUuid) -> Watched:
        """The state of a node. One without a state may have a lease of an earlier master."""
        known = self._machine.nodes.get(node)
        if known is None:
            now = self.now()
            earlier = bounds.count_waiting(self._store.current.cluster.auto_failover_after or 0)
            known = Watched(heard=now, lease=Granted(since=now + earlier))
            self._machine.nodes[node] = known
        return known

    def _update(self) -> None:
        cluster = self._store.current.cluster
        limit = cluster.auto_fence_after or 0
        self._machine.settings.fence_after = self._machine.settings.node_lease = limit
        paused = self._stops or cluster.find_recovery_pause(self._clock.now()) is not None
        self._machine.set_paused(self.now(), paused=paused)

    def _find_watchdog(self, node: NodeUuid) -> str:
        config = self._store.current
        known = config.nodes.get(node)
        return str(config.ndparams(known).get("watchdog") or "") if known is not None else ""

    # silence -----------------------------------------------------------------------------------

    def find_silent(
        self, nodes: Collection[NodeUuid], has_device: Callable[[NodeUuid], bool]
    ) -> list[Fence]:
        """The nodes that are to be fenced now; :meth:`note_fence` must follow for each.

        ``has_device``: whether something can switch a node off. One with a watchdog needs nothing.
        """
        with self._lock:
            for node in nodes:
                self._find(node)
            for gone in set(self._machine.nodes) - set(nodes):
                del self._machine.nodes[gone]
            self._update()
            self._machine.provable = frozenset(
                node
                for node in nodes
                if node != self._store.current.cluster.master_node
                and (self._machine.is_armed(node) or has_device(node))
            )
            effects = self._machine.feed(Tick(self.now()))
        return [effect for effect in effects if isinstance(effect, Fence)]

    def note_fence(self, node: NodeUuid, *, begun: bool) -> None:
        """Whether a job fences the silent node now; if not, it is found again at once."""
        with self._lock:
            if begun:
                self._machine.feed(FenceEnded(self.now(), node, proven=False))
            elif node in self._machine.nodes:
                self._machine.nodes[node].fencing = False

    def describe(self, node: NodeUuid) -> View:
        """The present state of a node."""
        with self._lock:
            self._update()
            machine, now = self._machine, self.now()
            known = machine.nodes.get(node)
            over = machine.find_lease_end(node)
            if over is not None and machine.paused and (now >= over or machine.is_released(node)):
                over = None
            fences = machine.find_fence_time(node)
            return View(
                silence=None if known is None else now - known.heard,
                lease_left=None if over is None else over - now,
                watchdog=machine.is_armed(node),
                fenced_in=None if fences is None else fences - now,
                may_boot=machine.may_boot(node, now),
            )

    # releases ----------------------------------------------------------------------------------

    def begin_stop(self) -> None:
        """From now on each call releases its node, as in a pause: this master stops for good."""
        with self._lock:
            self._stops = True

    def is_released(self, node: NodeUuid) -> bool:
        """Whether a node has shown that it needs no lease any more."""
        with self._lock:
            return self._machine.is_released(node)

    @contextlib.contextmanager
    def hold_back(self, node: NodeUuid) -> Iterator[LeaseEnd]:
        """Inside the block no call renews the lease of the node."""
        with self._lock:
            self._held_back[node] += 1
            self._find(node)
            self._update()
            end = LeaseEnd(self._machine.find_lease_end(node), self._machine.is_armed(node))
        try:
            yield end
        finally:
            with self._lock:
                self._held_back[node] -= 1
