"""Fences nodes that do not answer, if the cluster parameter ``auto_fence_after`` is set.

The master calls each node every few seconds, which renews its lease. One that has been silent for
long enough gets a job ``OP_NODE_FENCE``, which demands proof before anything starts elsewhere.
:mod:`ganeti.master.node_leases` knows who is silent; here are the thread, the calls and the jobs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from ganeti import constants, errors
from ganeti.base.clock import SYSTEM, Clock, Deadline, nanoseconds
from ganeti.base.waiting_thread import WaitingThread
from ganeti.config.store import Store
from ganeti.jobs.queue import JobQueue
from ganeti.master.node_leases import NodeLeases
from ganeti.model.config import Config
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node
from ganeti.opcodes.node import OpNodeFence
from ganeti.recovery import bounds
from ganeti.recovery.ladder import list_devices
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import NodeRpc

_LOG = logging.getLogger(__name__)

#: Seconds that a node gets to answer a call that releases it.
_RELEASE_TIME = 5.0
#: The first call may have to bring the stamp by which the node is released; the last one shows that
#: it was.
_RELEASE_CALLS = 3


class Fencer(WaitingThread):
    """A thread that calls the nodes and submits the jobs."""

    def __init__(
        self,
        store: Store,
        rpc: NodeRpc,
        leases: NodeLeases,
        queue: JobQueue,
        *,
        is_paused: Callable[[], bool],
        clock: Clock = SYSTEM,
    ) -> None:
        """``is_paused``: nothing is repaired now, as an administrator wants it."""
        super().__init__("fencing")
        self._store = store
        self._rpc = rpc
        self._leases = leases
        self._queue = queue
        self._is_paused = is_paused
        self._clock = clock
        #: nodes for which a job was submitted
        self._fenced_once: set[NodeUuid] = set()

    def note_change(self) -> None:
        """The limit may be another one."""
        self._wake()

    def was_fenced(self, node: NodeUuid) -> bool:
        """Whether a job to fence the node was submitted since the daemon started."""
        return node in self._fenced_once

    def _work(self) -> None:
        while True:
            with self._changed:
                if self._stopped:
                    return
                limit = self._store.current.cluster.auto_fence_after
                if limit is None:
                    self._changed.wait()
                    continue
            pause = Deadline(limit / bounds.CALLS, self._clock)
            try:
                self.check_nodes(limit)
            except errors.GanetiError as err:
                _LOG.error("nodes are not watched now: %s", errors.text(err))
            with self._changed:
                if not self._stopped:
                    self._changed.wait(pause.left)

    def release_nodes(self) -> None:
        """Tell all nodes that they need no leases, as this master stops: their guests run on.

        Until another master acts, nobody starts their instances elsewhere.
        """
        config = self._store.current
        limit = config.cluster.auto_fence_after
        if limit is None:
            return
        self._leases.begin_stop()
        asked, silent = config.online_nodes(), []
        for _ in range(_RELEASE_CALLS):
            answers = self._rpc.limit_time(_RELEASE_TIME).call_many(asked, NodeCalls.version)
            silent += [answer.node for answer in answers.values() if not answer.ok]
            asked = [
                answer.node
                for uuid, answer in answers.items()
                if answer.ok and not self._leases.is_released(uuid)
            ]
            if not asked:
                break
        _LOG.info("nodes that answer need no lease while this master is stopped")
        if silent or asked:
            _LOG.warning(
                "these nodes were not told that this master stops: unless another one calls them"
                " within %.0f s, they end the guests that may fail over, and watchdogs reset them:"
                " %s",
                bounds.count_acting(limit),
                _list_names([*silent, *asked]),
            )

    def check_nodes(self, limit: float) -> list[int]:
        """Call the nodes once, and fence those that are silent; the ids of the jobs.

        Raises:
            FileError, QuorumError: a job cannot be submitted; the next look tries again.
        """
        config = self._store.current
        nodes = config.online_nodes()
        # The leases of all others are renewed again when the slowest has answered.
        self._rpc.limit_time_exactly(limit / bounds.CALLS).call_many(nodes, NodeCalls.version)
        watched = [node.uuid for node in nodes]
        ids = []
        for found in self._leases.find_silent(watched, lambda node: _has_device(config, node)):
            ids += self._fence(config.nodes[NodeUuid(found.node)], found.silence)
        return ids

    def _fence(self, node: Node, silence: float) -> list[int]:
        if self._is_paused():
            _LOG.warning("node %s is silent, but is not fenced: recovery is paused", node.name)
            self._leases.note_fence(node.uuid, begun=False)
            return []
        _LOG.error("node %s has not answered for %.0f s and is fenced", node.name, silence)
        self._fenced_once.add(node.uuid)
        self._leases.note_fence(node.uuid, begun=True)
        text = f"no answer for {silence:.0f} s"
        reason = [(constants.FENCING_SOURCE, text, nanoseconds(self._clock.now()))]
        job = [OpNodeFence(node_name=node.name, reason=reason)]
        return self._queue.submit([job], None, ignore_drain=True)


def _list_names(nodes: Iterable[Node]) -> str:
    return ", ".join(sorted(node.name for node in nodes))


def _has_device(config: Config, node: NodeUuid) -> bool:
    """Whether something can switch a node off, and say that it is off."""
    return bool(list_devices(config.ndparams(config.nodes[node])))
