"""One run of the watcher, as its tasks see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ganeti import constants, errors
from ganeti.base.clock import Clock
from ganeti.luxi.client import Client, Submission
from ganeti.model.start_order import PARALLEL
from ganeti.paths import Paths
from ganeti.watcher import view


@dataclass(frozen=True)
class Options:
    """What the command line of the watcher says."""

    #: seconds after its end when a job is archived
    job_age: int
    #: UUID or name of the only node group to look after; None for all
    group: str | None = None
    verify_disks: bool = True
    #: whether a node that does not answer is an error of the disk verification
    strict: bool = True
    #: where the remote API is asked whether it answers; None: where it listens
    rapi_address: str | None = None
    #: instances that are started at a time on one node
    parallel: int = PARALLEL


@dataclass(frozen=True)
class Here:
    """This node, for the tasks that each node does."""

    paths: Paths
    clock: Clock
    options: Options


@dataclass(frozen=True)
class Round:
    """The way to the master, the time, and what the command line said."""

    client: Client
    clock: Clock
    paths: Paths
    options: Options

    @cached_property
    def groups(self) -> Sequence[view.Group]:
        """The node groups to look after, with live data of all nodes; asked for once.

        Raises:
            GanetiError: the master does not answer, or there is no such group.
        """
        found = view.load(self.client)
        wanted = self.options.group
        if wanted is None:
            return found
        chosen = [group for group in found if wanted in (group.uuid, group.name)]
        if not chosen:
            raise errors.OpPrereqError(f"node group {wanted!r} is not known", "unknown_entity")
        return chosen

    def reason(self, *texts: str) -> list[list[Any]]:
        """Reason trail of an opcode; a limit of jobs is one more text."""
        return [[constants.WATCHER_SOURCE, text, int(self.clock.now() * 1e9)] for text in texts]

    def submit(self, ops: Sequence[Mapping[str, object]]) -> list[Submission]:
        """A job for each opcode; nobody waits for them."""
        return self.client.submit_many_jobs([[op] for op in ops]) if ops else []
