"""Brings migrations and conversions to an end that were open when the last master ended.

Nodes know which instances were on their way, or got other disks. A job for each of them finds
out where it is; so it is seen in the list of jobs, holds its locks, and reports what it did. A node
that does not answer when the master starts, or is marked offline then, is asked when it is back.
"""

from __future__ import annotations

import logging
import threading

from ganeti import errors
from ganeti.base.clock import SYSTEM, Clock, nanoseconds
from ganeti.config.store import Store
from ganeti.jobs.queue import JobQueue
from ganeti.model.ids import InstanceUuid, NodeUuid
from ganeti.model.node import Node
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.instance_move import OpInstanceMigrate
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import NodeRpc

_LOG = logging.getLogger(__name__)

#: Seconds between two tries to ask the nodes that have not answered yet.
RETRY_AFTER = 15.0
#: Seconds that nodes get to say what was on its way.
PATIENCE = 30.0
#: Seconds that the end of the master waits for a node that is being asked.
STOP_PATIENCE = 5.0
_REASON = "the former master did not finish a migration or conversion"


class Settling:
    """A thread that asks each node once in the term of this master."""

    def __init__(
        self, store: Store, rpc: NodeRpc, queue: JobQueue, *, clock: Clock = SYSTEM
    ) -> None:
        self._store = store
        self._rpc = rpc
        self._queue = queue
        self._clock = clock
        self._stopping = threading.Event()
        #: nodes that have answered
        self._answered: set[NodeUuid] = set()
        #: nodes whose missing answer is in the log
        self._reported: set[NodeUuid] = set()
        self._thread = threading.Thread(target=self._loop, name="settling", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a node that hangs is not waited for. Idempotent."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(STOP_PATIENCE)

    def _loop(self) -> None:
        while not self._stopping.is_set():
            try:
                self.ask()
            except errors.GanetiError as err:
                _LOG.error("open migrations are not settled yet: %s", errors.text(err))
            self._stopping.wait(RETRY_AFTER)

    def ask(self) -> list[int]:
        """Ask those that have not answered yet; returns the ids of the jobs that were submitted.

        Raises:
            FileError, QuorumError: the jobs cannot be submitted; ask the same nodes again.
        """
        config = self._store.current
        nodes = [node for node in config.online_nodes() if node.uuid not in self._answered]
        found: dict[InstanceUuid, None] = {}
        answered: set[NodeUuid] = set()
        answers = self._rpc.limit_time(PATIENCE).call_many(nodes, NodeCalls.run_rights, [])
        for uuid, answer in answers.items():
            if answer.error is not None:
                if uuid not in self._reported:
                    _LOG.warning("asked later for open migrations: %s", errors.text(answer.error))
                self._reported.add(uuid)
                continue
            answered.add(uuid)
            # What a job of this master began is settled by that job.
            found.update(
                (right.uuid, None)
                for right in answer.get()
                if right.epoch[0] < self._rpc.epoch and right.uuid in config.instances
            )
        names = [config.instances[uuid].name for uuid in found]
        names += self._list_conversions([node for node in nodes if node.uuid in answered])
        jobs = self._submit(list(dict.fromkeys(names)))
        self._answered |= answered
        return jobs

    def _list_conversions(self, nodes: list[Node]) -> list[str]:
        """Instances whose disks are converted; a job of this master is waited for by its lock."""
        config = self._store.current
        hypervisors = [str(name) for name in config.cluster.enabled_hypervisors]
        answers = self._rpc.limit_time(PATIENCE).call_many(
            nodes, NodeCalls.instances_converting, hypervisors
        )
        known = {instance.name for instance in config.instances.values()}
        found = (name for answer in answers.values() for name in answer.value or ())
        return [name for name in found if name in known]

    def _submit(self, names: list[str]) -> list[int]:
        now = nanoseconds(self._clock.now())
        jobs: list[list[OpCode]] = [
            [
                OpInstanceMigrate(
                    instance_name=name, cleanup=True, reason=[("gnt:master", _REASON, now)]
                )
            ]
            for name in names
        ]
        if not jobs:
            return []
        ids = self._queue.submit(jobs, None, ignore_drain=True)
        _LOG.warning("open migrations of %d instance(s) are settled by jobs %s", len(ids), ids)
        return ids
