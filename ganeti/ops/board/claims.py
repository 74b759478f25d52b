"""Places that were chosen and are not in the configuration yet. Memory only.

From the moment of the decision a chosen place counts for every other request, until the
configuration contains it or the operation ends. A place that is handed to a submitted job lasts
until that job ends. A new master does not know it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from ganeti.model.config import Config
from ganeti.placement import facts


@dataclass(frozen=True)
class Claim:
    """The resources that one instance will take of its nodes."""

    #: name of the instance, or its uuid while it has none
    handle: str
    #: names, the primary one first
    nodes: tuple[str, ...]
    #: resources that count until then, as instances, each on its nodes
    takes: tuple[facts.Instance, ...]
    job_id: int = 0
    #: whether the job may go on after the operation that was given the place
    lasts: bool = False


def is_recorded(config: Config, claim: Claim) -> bool:
    """Whether the configuration has the instance on these nodes."""
    found = config.find_by_handle(claim.handle)
    if found is None:
        return False
    return set(claim.nodes) <= {config.nodes[uuid].name for uuid in config.instance_nodes(found)}


class Claims:
    """All claims. Not thread-safe."""

    def __init__(self, ended: Callable[[int], bool]) -> None:
        """``ended`` says whether a job has ended, also if it never started."""
        self._ended = ended
        self._claims: list[Claim] = []

    def add(self, job_id: int, claims: Iterable[Claim]) -> None:
        """Add the claims of a job, in place of its earlier ones for the same instances."""
        new = [replace(claim, job_id=job_id) for claim in claims]
        again = {(job_id, claim.handle) for claim in new}
        self._claims = [one for one in self._claims if (one.job_id, one.handle) not in again] + new

    def hand_over(self, job_id: int, heirs: Mapping[str, int]) -> None:
        """Give claims of a job to the jobs it submitted, by handle of the instance."""
        self._claims = [
            replace(claim, job_id=heirs[claim.handle], lasts=True)
            if claim.job_id == job_id and claim.handle in heirs
            else claim
            for claim in self._claims
        ]

    def release(self, job_id: int) -> None:
        """Forget what an operation of a job was given. Idempotent."""
        self._claims = [one for one in self._claims if one.job_id != job_id or one.lasts]

    def list_open(self, config: Config, job_id: int) -> list[Claim]:
        """Those that count for a job: of others, and not in the configuration yet."""
        self._claims = [
            claim
            for claim in self._claims
            if not is_recorded(config, claim)
            and (claim.job_id == job_id or not self._ended(claim.job_id))
        ]
        return [claim for claim in self._claims if claim.job_id != job_id]
