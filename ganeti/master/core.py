"""The parts of a running master, built in the order in which they need each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ganeti.base.clock import SYSTEM, Clock
from ganeti.config.reservations import Reservations
from ganeti.config.store import Store
from ganeti.jobs.execution import JobHandle
from ganeti.jobs.files import JobFiles
from ganeti.jobs.queue import JobQueue
from ganeti.locking.manager import LockManager
from ganeti.master import facts
from ganeti.master.distribution import Distribution
from ganeti.master.sources import MasterSources
from ganeti.model.names import BGL, LockLevel
from ganeti.net.tls import Identity
from ganeti.ops.operation import Context
from ganeti.ops.runner import Runner
from ganeti.paths import Paths
from ganeti.query import engine
from ganeti.rpc.client import NodeRpc

#: Operations that run at the same time.
WORKERS = 25


class Core:
    """Configuration, locks, queue and node calls of the master daemon."""

    def __init__(self, paths: Paths, *, workers: int = WORKERS, clock: Clock = SYSTEM) -> None:
        """Open everything; nothing runs before :meth:`start`.

        Raises:
            ConfigurationError, LockError, JobQueueError, X509CertError: what cannot be opened.
        """
        self.paths = paths
        self.clock = clock
        self.job_files = JobFiles(paths.queue)
        self.job_files.open()
        self.store = Store(paths, clock)
        self.facts = facts.Facts(paths)
        self.locks = LockManager([level.label for level in LockLevel], clock)
        self.reservations = Reservations()
        identity = Identity(paths.client_cert, paths.ca_cert)
        self.rpc = NodeRpc(identity.client_context())
        self.queue = JobQueue(
            self.job_files, self.locks, Runner(self._context), workers=workers, clock=clock
        )
        self.distribution = Distribution(self.store, self.rpc)

    def start(self) -> None:
        """Make locks for all objects, then let the queue run."""
        config = self.store.current
        self.locks.create(LockLevel.CLUSTER, [BGL])
        self.locks.create(LockLevel.INSTANCE, [i.name for i in config.instances.values() if i.name])
        self.locks.create(LockLevel.NODEGROUP, config.groups)
        self.locks.create(LockLevel.NODE, config.nodes)
        self.locks.create(LockLevel.NODE_RES, config.nodes)
        self.locks.create(LockLevel.NETWORK, config.networks)
        self.distribution.start()
        self.queue.start()

    def stop(self, timeout: float) -> bool:
        """Wait for running operations, write the last checkpoint; False after a time-out."""
        done = self.queue.stop(timeout)
        self.distribution.stop()
        self.rpc.stop()
        self.store.close()
        return done

    def sources(self) -> MasterSources:
        """Data for one query."""
        return MasterSources(
            self.store.current, self.rpc, self.queue, self.locks, self.facts
        )

    def _context(self, job: JobHandle) -> Context:
        return Context(
            job=job,
            store=self.store,
            rpc=self.rpc,
            locks=self.locks,
            reservations=self.reservations,
            clock=self.clock,
            paths=self.paths,
            services=self,
        )

    # services for operations -------------------------------------------------------------

    def query(self, what: str, fields: Sequence[str], qfilter: Any) -> dict[str, Any]:
        return dict(engine.query(self.sources(), what, list(fields), qfilter))

    def query_fields(self, what: str, fields: Sequence[str] | None) -> dict[str, Any]:
        return dict(engine.fields_of(what, fields))

    def cluster_info(self) -> dict[str, Any]:
        return facts.cluster_info(self.store.current, self.facts)

    def config_values(self, fields: Sequence[str]) -> list[Any]:
        return facts.config_values(
            self.store.current, self.facts, fields, drained=self.queue.drained
        )

    def distribute_ssconf(self) -> list[str]:
        return self.distribution.distribute()
