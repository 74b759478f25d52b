"""The shape of an operation: ask for locks, check, run.

Life cycle: ``locks()`` -> ``check()`` (reads only) -> pre hooks -> ``run()`` -> post hooks. A dry
run ends after the pre hooks. Everything an operation may touch arrives as :class:`Context`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, final

from ganeti.base.clock import Clock
from ganeti.config.changes import Author
from ganeti.config.job_claims import JobClaims
from ganeti.config.store import Store
from ganeti.jobs.execution import JobHandle, Need
from ganeti.locking.levels import LockLevel
from ganeti.locking.manager import LockManager
from ganeti.model.config import Config
from ganeti.model.ids import NodeUuid
from ganeti.opcodes.base import OpCode
from ganeti.ops.board.keeper import Boards
from ganeti.ops.services import Services
from ganeti.paths import Paths

if TYPE_CHECKING:  # with it comes TLS, which programs that work offline need not load
    from ganeti.rpc.client import NodeRpc

O = TypeVar("O", bound=OpCode)  # noqa: E741
R = TypeVar("R")
P = TypeVar("P")
T = TypeVar("T")

Needs = Iterator[Need]
#: Needs, and then what was found while their locks were granted.
Finding = Generator[Need, None, T]


@dataclass(frozen=True)
class Hooks:
    """Hooks of an operation: their directory, and the nodes on which they run (uuids)."""

    path: str
    object_type: str
    #: values of the operation, without the GANETI_ prefix
    env: Mapping[str, object]
    pre_nodes: Iterable[NodeUuid] = ()
    post_nodes: Iterable[NodeUuid] = ()


@dataclass
class Context:
    """The context of an operation."""

    job: JobHandle
    store: Store
    rpc: NodeRpc
    locks: LockManager
    claims: JobClaims
    clock: Clock
    paths: Paths
    services: Services
    #: the cluster as the placement model sees it, and the places chosen a moment ago
    boards: Boards = field(default_factory=Boards)
    #: why the user wants it, for the history
    reason: str = ""
    #: undo steps of what was done so far; run in reverse if the operation fails
    undo: ExitStack = field(default_factory=ExitStack)

    @property
    def config(self) -> Config:
        """The newest state; take it once and read from that."""
        return self.store.current

    @property
    def author(self) -> Author:
        """Author of changes in the history of the configuration."""
        submitter = self.job.submitter
        user = "" if submitter is None else submitter.shown
        limits = None if submitter is None else submitter.limits
        return Author(job=self.job.job_id, user=user, reason=self.reason, limits=limits)

    def log(self, message: str) -> None:
        """A line for the user, shown as it happens."""
        self.job.log(message)

    def warn(self, message: str) -> None:
        self.job.log(f"WARNING: {message}")

    # locks -------------------------------------------------------------------------------

    def list_held(self, level: LockLevel) -> frozenset[str]:
        return self.locks.list_held(self.job.job_id, level)

    def release(self, level: LockLevel, *, keep: Iterable[str] = ()) -> None:
        """Give up locks of a level that are not needed any more."""
        drop = self.list_held(level) - set(keep)
        self.locks.release(self.job.job_id, level, drop if keep else None)

    def downgrade(self, level: LockLevel) -> None:
        self.locks.downgrade(self.job.job_id, level)

    def claim(self, kind: str, value: str) -> None:
        """Claim a value for the job; see :meth:`JobClaims.claim`."""
        self.claims.claim(kind, value, self.job.job_id)


class Operation(ABC, Generic[O, R]):
    """One opcode, being done. A subclass stands in ``ops/<family>/<verb>.py``."""

    #: whether :meth:`run` watches ``ctx.job.cancel_asked`` and then ends with JobCanceled
    cancelable: ClassVar[bool] = False

    def __init__(self, op: O, ctx: Context) -> None:
        self.op = op
        self.ctx = ctx

    @classmethod
    def variant(cls, op: O, ctx: Context) -> type[Operation[O, Any]]:
        """The class that runs the opcode: this one, or another one for another kind of target."""
        return cls

    @classmethod
    def check_submission(cls, op: O) -> None:
        """Refuse a job with this opcode before it is accepted; reads the opcode only.

        Raises:
            OpPrereqError: it can never be done, whatever the state of the cluster.
        """

    def locks(self) -> Needs:
        """Yield needs in level order; after each ``yield`` those locks are held.

        So a later need may depend on what is now safe to read. No locks by default.
        """
        yield from ()

    def check(self) -> None:
        """Refuse what cannot be done; reads only.

        Raises:
            OpPrereqError: what is wrong, and what to do.
        """

    def hooks(self) -> Hooks | None:
        """Hooks around :meth:`run`; called after :meth:`check`, and again before the post hooks."""
        return None

    def preview(self) -> object:
        """The result of a dry run, which ends after the checks; reads only."""
        return None

    @abstractmethod
    def run(self) -> R:
        """Do it. On an error everything in ``ctx.undo`` is undone."""


class FindingOperation(Operation[O, R], Generic[O, T, R]):
    """An operation that finds what it acts on while it gets its locks.

    ``find()`` returns that, as a frozen dataclass or one object; the later phases have it in
    :attr:`found`.
    """

    found: T

    @abstractmethod
    def find(self) -> Finding[T]:
        """Yield needs as :meth:`locks` does, and return what was found.

        Raises:
            OpPrereqError: there is no such object, or not any more.
        """

    @final
    def locks(self) -> Needs:
        self.found = yield from self.find()


class PlannedOperation(Operation[O, R], Generic[O, P, R]):
    """An operation whose checks decide what it does.

    ``decide()`` returns that as a frozen dataclass; ``hooks()``, ``preview()`` and ``run()`` find
    it in :attr:`plan`.
    """

    plan: P

    @abstractmethod
    def decide(self) -> P:
        """Refuse what cannot be done, and return what is to be done; reads only.

        Raises:
            OpPrereqError: what is wrong, and what to do.
        """

    @final
    def check(self) -> None:
        self.plan = self.decide()


#: Source of the text that a user gave with ``--reason``.
_USER = "gnt:user"
#: Sources of entries that say where a request came from, not why.
_WAYS = ("gnt:client:", "gnt:library:", "gnt:opcode:", "rlib2:")


def reason_of(op: OpCode) -> str:
    """The reason that a user gave for an opcode, else that of the program that asked for it."""
    given = [(source, text) for source, text, _time in op.reason if text]
    given = [entry for entry in given if not entry[0].startswith(_WAYS)]
    return next((text for source, text in given if source == _USER), given[0][1] if given else "")
