"""The parts of a running master, built in the order in which they need each other."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from ganeti.base import jsonio
from ganeti.base.clock import SYSTEM, Clock
from ganeti.base.json_types import JsonObject
from ganeti.config.job_claims import JobClaims
from ganeti.config.store import Store
from ganeti.jobs.execution import JobHandle
from ganeti.jobs.files import JobFiles
from ganeti.jobs.queue import JobQueue
from ganeti.jobs.tally import JobTally
from ganeti.locking.levels import LockLevel
from ganeti.locking.manager import LockManager
from ganeti.master import facts, room
from ganeti.master.address import Address
from ganeti.master.channel import Snapshot, State
from ganeti.master.demotion import Demotion
from ganeti.master.distribution import Distribution
from ganeti.master.fencing import Fencer
from ganeti.master.findings import Findings
from ganeti.master.late_starts import LateStarts
from ganeti.master.mastership import Mastership
from ganeti.master.node_leases import NodeLeases
from ganeti.master.replication import Replication
from ganeti.master.request_tally import RequestTally
from ganeti.master.settling import Settling
from ganeti.master.sources import MasterSources
from ganeti.master.survey import Survey
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.finding import Finding
from ganeti.model.ids import NodeUuid
from ganeti.net.tls.contexts import Identity
from ganeti.ops import locks
from ganeti.ops.board.keeper import Boards
from ganeti.ops.operation import Context
from ganeti.ops.runner import Runner
from ganeti.ops.services import LeaseEnd
from ganeti.ops.steps.nodes import failover_places
from ganeti.paths import Paths
from ganeti.query import engine
from ganeti.rpc.client import NodeRpc
from ganeti.rpc.objects import RunNumber
from ganeti.rpc.rounds import Rounds

_LOG = logging.getLogger(__name__)

#: Seconds the master candidates get at the end to take the last state.
FLUSH_TIMEOUT = 5.0


class Core:
    """Configuration, locks, queue and node calls of the master daemon."""

    def __init__(self, paths: Paths, clock: Clock = SYSTEM) -> None:
        """Open everything; nothing runs before :meth:`start`.

        Raises:
            ConfigurationError, LockError, JobQueueError, X509CertError: what cannot be opened.
        """
        self.paths = paths
        self.clock = clock
        identity = Identity(paths.client_cert, paths.ca_cert)
        self.rpc = NodeRpc(identity.client_context())
        self.replication = Replication(self.rpc, clock)
        self.job_files = JobFiles(paths.queue, self.replication)
        self.job_files.open()
        try:
            self.store = Store(paths, clock, self.replication)
        except BaseException:  # an interrupt too: release the lock of the queue and raise it
            self.abandon()
            raise
        self.facts = facts.Facts(paths)
        self.locks = LockManager([level.label for level in LockLevel], clock)
        self.claims = JobClaims()
        self.queue = JobQueue(
            self.job_files,
            self.locks,
            Runner(self._context),
            workers=self.store.current.cluster.max_running_jobs,
            clock=clock,
        )
        self.tally = JobTally(self.queue)
        self.boards = Boards(self.queue.has_ended)
        self.distribution = Distribution(self.store, self.rpc)
        self.demotion = Demotion(self.store, self.rpc, self.locks)
        self.address = Address(self.store, self.rpc)
        self.settling = Settling(self.store, self.rpc, self.queue)
        self.mastership = Mastership(
            paths, self.store, self.job_files, self.rpc, self.replication, clock
        )
        self.lease = self.mastership.lease
        self.node_leases = NodeLeases(self.store, self.lease.count_left, clock)
        self.rpc.leases = self.node_leases
        self.fencer = Fencer(
            self.store,
            self.rpc,
            self.node_leases,
            self.queue,
            is_paused=self._is_paused,
            clock=clock,
        )
        self.late_starts = LateStarts(
            self.store,
            self.queue,
            lambda node: failover_places.find_places(
                self._context(room.NoJob()), node, everything=False
            ),
            is_paused=self._is_paused,
            clock=clock,
        )
        self.findings = Findings(paths, clock)
        self.survey = Survey(
            self.store,
            self.rpc,
            lambda: room.examine(self.query, self._context, clock),
            clock,
        )
        self.started = clock.now()
        self.requests = RequestTally()
        self._run_numbers = itertools.count(1)
        self._readings = Rounds()

    def prepare(self) -> None:
        """Make locks for all objects: now queries of all but jobs can be answered."""
        locks.create(self.locks, self.store.current)

    def abandon(self) -> None:
        """Let go of the job queue and of the nodes, of a core that was not started."""
        self.rpc.stop()
        self.job_files.close()

    def start(self) -> None:
        """Read the queue, then let it run; blocks while the files of many jobs are read.

        The copies begin when the queue is read: both at once would read the same files.
        """
        config = self.store.current
        begin = self.clock.monotonic()
        count = self.queue.load()
        _LOG.info("read %d jobs in %.1f s", count, self.clock.monotonic() - begin)
        self.tally.load()
        state = State(
            self._snapshot,
            self.job_files.read_archived_contents,
            self.mastership.count_failover_after,
            self.lease.note_contact,
        )
        claimed = self.mastership.renew_claim()
        self.replication.start(state, config, self.paths.position_file, claimed)
        self.store.add_listener(self._follow_change)
        self.lease.start()
        self.queue.set_rules(config.data.filters.values())
        self.distribution.start()
        self.demotion.start()
        self.queue.start()
        self.address.start()
        self.settling.start()
        self.fencer.start()
        self.late_starts.start()
        self.survey.start()

    def _follow_change(self, before: Config, after: Config) -> None:
        if before.nodes is not after.nodes or before.cluster is not after.cluster:
            self.replication.follow(after)
        if before.cluster.max_running_jobs != after.cluster.max_running_jobs:
            self.queue.resize(after.cluster.max_running_jobs)
        locks.follow(self.locks, before, after)
        if before.cluster.auto_failover_after != after.cluster.auto_failover_after:
            self.mastership.note_change()
        if before.cluster.auto_fence_after != after.cluster.auto_fence_after:
            self.fencer.note_change()
        if before.data.filters is not after.data.filters:
            self.queue.set_rules(after.data.filters.values())

    def _is_paused(self) -> bool:
        """Whether an administrator wants nothing to be repaired now."""
        paused = self.store.current.cluster.find_recovery_pause(self.clock.now()) is not None
        return paused or self.facts.watcher_pause() is not None

    def _snapshot(self, files: bool) -> Snapshot:
        """Everything a master candidate has a copy of; those that ask together share the files."""
        config = self.store.current
        return Snapshot(
            serial=config.data.serial_no,
            config=jsonio.dumps(base.to_wire(config.data)),
            files=self._readings.share("files", self.job_files.contents) if files else {},
            drained=self.job_files.drained,
        )

    def stop(self, timeout: float) -> bool:
        """Release the nodes, wait for running operations, write the last checkpoint.

        False after a time-out.
        """
        self.lease.stop()
        self.address.stop()
        self.fencer.stop()
        self.fencer.release_nodes()
        self.late_starts.stop()
        self.survey.stop()
        self.settling.stop()
        done = self.queue.stop(timeout)
        self.distribution.stop()
        self.demotion.stop()
        self.store.close()
        self.replication.stop(FLUSH_TIMEOUT)
        self.mastership.leave_role()
        self.rpc.stop()
        return done

    def sources(self) -> MasterSources:
        """Data for one query."""
        return MasterSources(self.store.current, self.rpc, self.queue, self.locks, self.facts)

    def _context(self, job: JobHandle) -> Context:
        return Context(
            job=job,
            store=self.store,
            rpc=self.rpc,
            locks=self.locks,
            claims=self.claims,
            clock=self.clock,
            paths=self.paths,
            services=self,
            boards=self.boards,
        )

    # services for operations -------------------------------------------------------------

    def query(self, what: str, fields: Sequence[str], qfilter: object) -> JsonObject:
        return dict(engine.query(self.sources(), what, list(fields), qfilter))

    def query_fields(self, what: str, fields: Sequence[str] | None) -> JsonObject:
        return dict(engine.fields_of(what, fields))

    def cluster_info(self) -> JsonObject:
        return facts.cluster_info(self.store.current, self.facts)

    def config_values(self, fields: Sequence[str]) -> list[object]:
        return facts.config_values(
            self.store.current, self.facts, fields, drained=lambda: self.queue.drained
        )

    def distribute_ssconf(self) -> list[str]:
        return self.distribution.distribute()

    def hold_sent_ssconf(self) -> AbstractContextManager[Mapping[str, str]]:
        return self.distribution.hold_sent()

    def replication_failure(self, candidate: NodeUuid) -> str:
        return self.replication.failure_of(candidate)

    def run_epoch(self) -> RunNumber:
        return self.rpc.epoch, next(self._run_numbers)

    def hold_lease_back(self, node: NodeUuid) -> AbstractContextManager[LeaseEnd]:
        return self.node_leases.hold_back(node)

    def change_deciders(self, after: Config) -> AbstractContextManager[None]:
        return self.mastership.change_deciders(after)

    def has_ended(self, job_id: int) -> bool:
        return self.queue.has_ended(job_id)

    def note_findings(self, part: str, findings: Sequence[Finding]) -> None:
        self.findings.note(part, findings)
