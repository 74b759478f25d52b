"""A master whose start took long votes again before it acts."""

from __future__ import annotations

from typing import Any

import pytest

from ganeti.base.clock import SYSTEM, Clock
from ganeti.config.changes import Author

LIMIT = 15


class Jumping(Clock):
    """The clock of the machine, and what a test adds to it."""

    ahead = 0.0

    def now(self) -> float:
        return SYSTEM.now() + self.ahead

    def monotonic(self) -> float:
        return SYSTEM.monotonic() + self.ahead


@pytest.mark.parametrize(("limit", "passed", "votes"), [(LIMIT, 1, 0), (LIMIT, 6, 1), (0, 600, 0)])
def test_a_claim_that_is_old_is_made_again(
    master: Any, monkeypatch: pytest.MonkeyPatch, limit: int, passed: float, votes: int
) -> None:
    core, clock, seen = master.core, Jumping(), list[dict[str, Any]]()
    core.replication.alone = False
    core.store.change(
        "cluster-modify", Author(), lambda draft: draft.update_cluster(auto_failover_after=limit)
    )
    monkeypatch.setattr(core, "vote", lambda **options: seen.append(options))
    monkeypatch.setattr(core, "clock", clock)
    core._claimed = clock.monotonic()
    clock.ahead = passed
    core._renew_claim()
    assert len(seen) == votes
