"""One run of the watcher, as its tasks see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ganeti.base.clock import Clock
from ganeti.luxi.client import Client, Submission

#: Who asked, in the reason trail of every job of the watcher.
SOURCE = "gnt:watcher"


@dataclass(frozen=True)
class Round:
    """The way to the master, the time, and what the command line said."""

    client: Client
    clock: Clock
    #: seconds after its end when a job is archived
    job_age: int

    def reason(self, text: str) -> list[list[Any]]:
        """Reason trail of an opcode."""
        return [[SOURCE, text, int(self.clock.now() * 1e9)]]

    def submit(self, ops: Sequence[Mapping[str, Any]]) -> list[Submission]:
        """A job for each opcode; nobody waits for them."""
        return self.client.submit_many_jobs([[op] for op in ops])
