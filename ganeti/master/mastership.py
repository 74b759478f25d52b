"""How this node becomes the master, and what it does to remain it."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator

from ganeti import errors
from ganeti.base.clock import Clock
from ganeti.config import role_stores, vote
from ganeti.config.role import Role
from ganeti.config.store import Store
from ganeti.jobs.files import JobFiles
from ganeti.master.lease import Lease
from ganeti.master.replication import Replication
from ganeti.master.role_keeper import RoleKeeper
from ganeti.model.config import Config
from ganeti.paths import Paths
from ganeti.recovery import bounds
from ganeti.recovery.role import RoleStore
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import NodeRpc
from ganeti.rpc.replica import ReplicaUpdate

_LOG = logging.getLogger(__name__)


class Mastership:
    """The vote, the term and the lease of the master; its role, where a store has that."""

    def __init__(
        self,
        paths: Paths,
        store: Store,
        job_files: JobFiles,
        rpc: NodeRpc,
        replication: Replication,
        clock: Clock,
    ) -> None:
        self._paths = paths
        self._store = store
        self._job_files = job_files
        self._rpc = rpc
        self._replication = replication
        self._clock = clock
        #: when this master began to claim its term, by the monotonic clock
        self._claimed = clock.monotonic()
        #: renews the role where a store has it
        self.keeper: RoleKeeper | None = None
        #: held while ``keeper`` changes
        self._deciders = threading.Lock()
        #: called once when another node has the role
        self.on_role_lost: Callable[[str], None] = lambda _text: None
        self.lease = Lease(self._find_lease, self._find_contact, clock, who=self._name_deciders)

    # becoming the master -----------------------------------------------------------------

    def vote(self, *, alone: bool, patience: float) -> None:
        """Become the master in the eyes of the nodes, before anything is changed.

        ``alone`` skips the vote: the administrator knows that no other node can be the master.
        Changes that are acknowledged then may be on this node only.

        Raises:
            NoMasterError: this node may not be the master; the text says why.
        """
        config = self._store.current
        last_job = self._job_files.last_id()
        own = vote.Own.read(config.master, config.data.serial_no, last_job, self._paths)
        store = role_stores.open_store(config, self._paths)
        role = None if store is None else Role(store, config.master.name, self._clock)
        try:
            if alone:
                self._replication.alone = True
                answers = vote.ask(config, self._rpc)
            else:
                answers = vote.run_vote(
                    config, self._rpc, own, failover=False, patience=patience, role=role
                )
            self._claimed = self._clock.monotonic()
            number = vote.claim(config, self._rpc, own, answers, alone=alone, role=role)
        except BaseException:  # an interrupt too: close the store of the role and raise it
            if store is not None:
                store.close()
            raise
        if role is not None:
            self._keep(role)
        _LOG.info("master in term %d", number)

    def renew_claim(self) -> float:
        """Vote again if so much time has passed that a candidate may take over before long.

        Reading the queue may take that long, and the whole machine may have been frozen. A later
        answer of the candidates would not do: one of them may be about to claim a term.

        Returns when the claim of this master began, by the monotonic clock.
        """
        limit = self.count_failover_after()
        passed = self._clock.monotonic() - self._claimed
        votes = self.keeper is None and not self._replication.alone
        if limit and votes and passed >= bounds.count_acting(limit) / 2:
            _LOG.info("the claim is %.1f s old, and is made again", passed)
            self.vote(alone=False, patience=0.0)
        return self._claimed if self.keeper is None else self._clock.monotonic()

    # remaining the master ----------------------------------------------------------------

    def count_failover_after(self) -> int:
        """Seconds of silence after which a candidate takes over by itself; 0: never."""
        return self._store.current.cluster.auto_failover_after or 0

    def note_change(self) -> None:
        """``auto_failover_after`` has another value."""
        self.lease.note_change()
        if self.keeper is not None:
            self.keeper.note_change()
        threading.Thread(target=self._inform_own_node, name="own-limit", daemon=True).start()

    def _inform_own_node(self) -> None:
        """Tell the node daemon here, as calls to candidates tell theirs.

        It brings the master back if nothing else starts the master daemon.
        """
        update = ReplicaUpdate(epoch=self._rpc.epoch, failover_after=self.count_failover_after())
        try:
            self._rpc.call_one(self._store.current.master, NodeCalls.replica_update, update)
        except errors.GanetiError as err:
            _LOG.warning("the own node daemon does not know the limit: %s", errors.text(err))

    def _find_lease(self) -> int:
        """Seconds for which nobody else becomes the master after this one was heard; 0: endless."""
        keeper = self.keeper  # a job may end it meanwhile
        return self.count_failover_after() if keeper is None else keeper.count_seconds()

    def _find_contact(self) -> float:
        """When who decides about the master was last known to follow, by the monotonic clock.

        A master that does not reach the candidates leaves its place, too, where one of them may
        take it.
        """
        copies, keeper = self._replication.find_contact(), self.keeper
        if keeper is None:
            return copies
        contact = keeper.find_contact()
        return min(contact, copies) if self.count_failover_after() else contact

    def _name_deciders(self) -> str:
        candidates, keeper = "a majority of the master candidates", self.keeper
        return candidates if keeper is None else f"{keeper.role.store.name}, or {candidates},"

    # the role in a store -----------------------------------------------------------------

    @contextlib.contextmanager
    def change_deciders(self, after: Config) -> Iterator[None]:
        """Hold the role by the old and by the new ``master_vote`` while the caller changes it."""
        with self._deciders:
            if after.cluster.master_vote is not self._store.current.cluster.master_vote:
                store = role_stores.open_store(after, self._paths)
                if store is not None:
                    self._enter(store, after)
            try:
                yield
            finally:
                if self._store.current.cluster.master_vote is None:
                    self.leave_role()

    def _enter(self, store: RoleStore, after: Config) -> None:
        """Have the role in a store beside the vote of the nodes."""
        role = Role(store, after.master.name, self._clock)
        try:
            role.take(self._rpc.epoch, vote.find_lease(after))
        except BaseException:  # an interrupt too: close the store of the role and raise it
            store.close()
            raise
        self._keep(role)
        self.lease.change_source()

    def _keep(self, role: Role) -> None:
        """Renew the lease of the role from now on."""
        keeper = RoleKeeper(
            role,
            lambda: vote.find_lease(self._store.current),
            alone=(lambda: self._rpc.epoch) if self._replication.alone else None,
            clock=self._clock,
        )
        keeper.on_renewed = self.lease.note_change
        keeper.on_lost = lambda text: self.on_role_lost(text)
        self.keeper = keeper
        keeper.start()

    def leave_role(self) -> None:
        """Let another node have the role at once."""
        keeper, self.keeper = self.keeper, None
        if keeper is None:
            return
        keeper.stop()
        try:
            keeper.role.release()
        except errors.RemoteError as err:
            _LOG.warning("the role of the master ends with its lease: %s", errors.text(err))
        keeper.role.store.close()
        self.lease.change_source()
