"""Sources of data for the query engine, as one protocol, and the shapes of their answers.

The master daemon implements :class:`Sources` over its configuration, node calls, job queue and
lock manager. The engine asks for live data at most once per query, with everything it needs in
that one round, and never for nodes that are marked offline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from ganeti.filters.answer import ResultStatus
from ganeti.model.backup import Manifest
from ganeti.model.config import Config
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.job import JobRecord
from ganeti.model.node import Node
from ganeti.rpc.objects import Console, ExtStorageInfo, InstanceInfo, OsInfo

T = TypeVar("T")


class Need(Enum):
    """Something that a field is made of besides the configuration."""

    #: boot id of a node; the only need for which nodes without instances are asked
    NODE = "node"
    #: space of the cluster's default storage on a node
    NODE_STORAGE = "node storage"
    #: spindles of a node (physical volumes)
    NODE_SPINDLES = "node spindles"
    #: memory and processors of a node, as the default hypervisor sees them
    NODE_HYPERVISOR = "node hypervisor"
    #: what runs on nodes
    INSTANCES = "instances"
    CONSOLES = "consoles"
    EXPORTS = "exports"
    BACKUPS = "backups"
    OS = "os"
    EXTSTORAGE = "extstorage"
    #: job files
    JOBS = "jobs"
    #: archived jobs have to be read, too
    ARCHIVE = "archive"
    LOCKS = "locks"
    #: state of the master daemon that is not in the configuration
    FACTS = "facts"


#: Needs for which nodes are called, which may take as long as a node hangs.
NODE_CALLS = frozenset(
    {
        Need.NODE,
        Need.NODE_STORAGE,
        Need.NODE_SPINDLES,
        Need.NODE_HYPERVISOR,
        Need.INSTANCES,
        Need.CONSOLES,
        Need.EXPORTS,
        Need.BACKUPS,
        Need.OS,
        Need.EXTSTORAGE,
    }
)


class NodeState(Enum):
    """How a node took a call; the value is the status of fields made of its answer."""

    OK = ResultStatus.NORMAL
    OFFLINE = ResultStatus.OFFLINE
    #: unreachable, or it refused, or its answer made no sense
    FAILED = ResultStatus.NODATA


@dataclass(frozen=True, slots=True)
class NodeAnswer(Generic[T]):
    """Answer of one node; ``payload`` is there if and only if ``state`` is OK."""

    state: NodeState
    payload: T | None = None

    @classmethod
    def ok(cls, payload: T) -> NodeAnswer[T]:
        return cls(NodeState.OK, payload)


#: Answer of a node that was not asked or did not answer.
NO_ANSWER: NodeAnswer[Any] = NodeAnswer(NodeState.FAILED)

#: Answers by node uuid; a node that is missing counts as failed.
Answers: TypeAlias = Mapping[NodeUuid, NodeAnswer[T]]

#: Type, name and parameters of a storage unit, as in the node call ``node_info``.
StorageUnit: TypeAlias = tuple[str, str, list[Any]]

#: Result of the node call ``node_info``: boot id, storage units, hypervisors.
NodeInfo: TypeAlias = tuple[str, Sequence[Mapping[str, Any]] | None, Sequence[Any] | None]


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """Request to one node: storage units, and names of hypervisors."""

    units: tuple[StorageUnit, ...] = ()
    hypervisors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobView:
    """A job; its record does not change any more."""

    record: JobRecord
    archived: bool = False


#: A job id, or the name of another owner.
Owner: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class LockView:
    """A lock: ``mode`` is exclusive, shared or None; ``pending`` are (mode, owners)."""

    name: str
    mode: str | None = None
    owners: Sequence[Owner] = ()
    pending: Sequence[tuple[str, Sequence[Owner]]] = ()


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Facts of a cluster that are not in its configuration."""

    drained: bool = False
    #: seconds since 1970
    watcher_pause: float | None = None
    #: word size and machine, such as ("64bits", "x86_64")
    architecture: tuple[str, str] = ("", "")
    vcs_version: str = ""


class Sources(Protocol):
    """The sources of the data of a query.

    ``config`` is read once per query. All other methods may block for as long as the time-out of
    the node call behind them; they must not raise because of a node, but say so in its answer.
    """

    @property
    def config(self) -> Config:
        """The current snapshot."""

    def node_info(self, requests: Mapping[NodeUuid, NodeRequest]) -> Answers[NodeInfo]:
        """Ask the nodes with these uuids; ``requests`` says what for each."""

    def instances_info(
        self, nodes: Sequence[Node], hypervisors: Sequence[str]
    ) -> Answers[Mapping[str, InstanceInfo]]:
        """Facts about the guests on the nodes, by instance name."""

    def consoles(self, instances: Sequence[Instance]) -> Mapping[str, NodeAnswer[Console]]:
        """Consoles by instance uuid, asked of the primary nodes."""

    def exports(self, nodes: Sequence[Node]) -> Answers[Sequence[str]]:
        """Names of the exports on the nodes."""

    def backups(self, repositories: Sequence[str]) -> Mapping[str, NodeAnswer[Sequence[Manifest]]]:
        """Backups by repository (empty for the default one), asked of the master node."""

    def os_diagnose(self, nodes: Sequence[Node]) -> Answers[Sequence[OsInfo]]:
        """OS definitions on the nodes; of one name, the first is the one that is used."""

    def extstorage_diagnose(self, nodes: Sequence[Node]) -> Answers[Sequence[ExtStorageInfo]]:
        """Storage providers on the nodes."""

    def job_ids(self, archived: bool) -> Sequence[int]:
        """Ids of the jobs in the queue, with ``archived`` also of those in the archive."""

    def jobs(self, ids: Sequence[int]) -> Mapping[int, JobView]:
        """Jobs by id, from the queue or else the archive; unknown ids are left out."""

    def locks(self) -> Sequence[LockView]:
        """All locks that exist now."""

    def cluster_facts(self) -> ClusterFacts:
        """Drain flag, watcher pause and the like."""
