"""Starts instances of dead nodes that could not start at once: no room, or a job that failed.

While there are any, the nodes are asked for room every half minute. When one has room, a job
``OP_NODE_FENCE`` starts what it can; the proof of the death is known then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from ganeti import constants, errors
from ganeti.base.clock import SYSTEM, Clock, nanoseconds
from ganeti.base.waiting_thread import WaitingThread
from ganeti.config.store import Store
from ganeti.jobs.queue import JobQueue
from ganeti.model.config import Config
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.node import OpNodeFence
from ganeti.ops.planning import recovery
from ganeti.ops.steps.nodes.failover_places import Places

_LOG = logging.getLogger(__name__)

#: Seconds between two looks, and from the death of a node to the first one.
PERIOD = 30.0
#: Seconds from a failed attempt to the next; doubled with each further one.
PAUSE = 60.0
#: Seconds from a job that started nothing to the next one: the node answers again, but an
#: administrator has not set it online.
REFUSED_PAUSE = 600.0


class LateStarts(WaitingThread):
    """A thread that submits the jobs. :attr:`roomless` is replaced as a whole."""

    def __init__(
        self,
        store: Store,
        queue: JobQueue,
        find_places: Callable[[Node], Places],
        *,
        is_paused: Callable[[], bool],
        clock: Clock = SYSTEM,
    ) -> None:
        """``find_places`` asks the nodes, and blocks meanwhile."""
        super().__init__("recovery-retries")
        self._store = store
        self._queue = queue
        self._find_places = find_places
        self._is_paused = is_paused
        self._clock = clock
        #: why instances wait for room, by node and name
        self.roomless: Mapping[NodeUuid, Mapping[str, str]] = {}
        #: when the last job was submitted, by node
        self._asked: dict[NodeUuid, float] = {}

    def start(self) -> None:
        self._store.add_listener(self._follow_change)
        super().start()

    def _follow_change(self, before: Config, after: Config) -> None:
        if before.nodes is not after.nodes:
            self._wake()

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._changed.wait_for(self._is_needed) or self._stopped:
                    return
            try:
                self.try_again()
            except errors.GanetiError as err:
                _LOG.error("instances of dead nodes are not tried again now: %s", errors.text(err))
            with self._changed:
                if self._changed.wait_for(lambda: self._stopped, PERIOD):
                    return

    def _is_needed(self) -> bool:
        nodes = self._store.current.nodes.values()
        return self._stopped or any(node.is_proven_dead for node in nodes)

    def try_again(self) -> list[int]:
        """Ask for room once, and submit jobs for what has some; their ids.

        Raises:
            GanetiError: the nodes cannot be asked, or a job cannot be submitted.
        """
        config, now = self._store.current, self._clock.now()
        roomless: dict[NodeUuid, Mapping[str, str]] = {}
        ids: list[int] = []
        for node in config.nodes.values():
            due = self._find_due(config, node, now)
            if not due:
                continue
            places = self._find_places(node)
            roomless[node.uuid] = dict(places.roomless)
            found = [start for start in places.starts if start.instance.uuid in due]
            if found and not self._is_paused():
                ids += self._submit(node, len(found))
                self._asked[node.uuid] = now
        self.roomless = roomless
        return ids

    def _find_due(self, config: Config, node: Node, now: float) -> set[str]:
        """Uuids of the instances of a dead node that may be tried now."""
        if not node.is_proven_dead or node.fenced is None or now < node.fenced.time + PERIOD:
            return set()
        ended = self._queue.has_ended
        rescue = recovery.plan(config, node, now, everything=False, has_ended=ended)
        if self._is_refused(config, node, now):
            return set()
        return {item.uuid for item in rescue.failovers if _is_due(item, node, now)}

    def _is_refused(self, config: Config, node: Node, now: float) -> bool:
        """Whether the last job of this node was submitted not long ago, and started nothing."""
        asked = self._asked.get(node.uuid)
        if asked is None or now >= asked + REFUSED_PAUSE:
            return False
        found = (recovery.find_attempt(item, node) for item in config.instances.values())
        return all(attempt is None or attempt.time < asked for attempt in found)

    def _submit(self, node: Node, count: int) -> list[int]:
        text = f"{count} of its instances can start now"
        _LOG.warning("node %s is dead: %s", node.name, text)
        reason = [(constants.LATE_STARTS_SOURCE, text, nanoseconds(self._clock.now()))]
        job = [OpNodeFence(node_name=node.name, reason=reason)]
        return self._queue.submit([job], None, ignore_drain=True)


def _is_due(item: Instance, node: Node, now: float) -> bool:
    attempt = recovery.find_attempt(item, node)
    return attempt is None or now >= attempt.time + PAUSE * 2.0 ** (attempt.number - 1)
