"""Services of the daemon for operations, besides configuration, locks and nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from ganeti.base.json_types import JsonObject
from ganeti.model.config import Config
from ganeti.model.finding import Finding
from ganeti.model.ids import NodeUuid
from ganeti.rpc.objects import RunNumber


@dataclass(frozen=True)
class LeaseEnd:
    """When a node whose lease is not renewed any more has none."""

    #: on the clock of the master; None: nodes have no leases
    over: float | None
    #: a watchdog resets the node before
    watchdog: bool


class Services(Protocol):
    """Given by the master daemon."""

    def query(self, what: str, fields: Sequence[str], qfilter: object) -> JsonObject:
        """Answer of a query in its wire form."""

    def query_fields(self, what: str, fields: Sequence[str] | None) -> JsonObject: ...

    def cluster_info(self) -> JsonObject: ...

    def config_values(self, fields: Sequence[str]) -> list[object]: ...

    def distribute_ssconf(self) -> list[str]:
        """Update the ssconf files of all nodes now; returns a text for each failure."""

    def hold_sent_ssconf(self) -> AbstractContextManager[Mapping[str, str]]:
        """Values of the ssconf files as the nodes were sent them last.

        While it is held they are not sent anything newer, so nobody may hold it for long.
        """

    def replication_failure(self, candidate: NodeUuid) -> str:
        """Why a master candidate has no copy of the newest state; empty if it has one.

        A candidate that lags is tried again first, which blocks for some seconds.
        """

    def run_epoch(self) -> RunNumber:
        """The number of a new run right; never issued twice."""

    def hold_lease_back(self, node: NodeUuid) -> AbstractContextManager[LeaseEnd]:
        """Inside the block no call renews the lease of a node."""

    def change_deciders(self, after: Config) -> AbstractContextManager[None]:
        """Inside the block the configuration may change who decides about the master.

        The deciders in ``after`` have agreed to this master before the block begins.

        Raises:
            NoMasterError: another node has the role there.
            RemoteError: no answer.
        """

    def has_ended(self, job_id: int) -> bool:
        """Whether a job is over, or no longer known."""

    def note_findings(self, part: str, findings: Sequence[Finding]) -> None:
        """Note the findings of a verification of a group (uuid; empty: the configuration)."""
