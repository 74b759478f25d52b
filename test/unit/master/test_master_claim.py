"""A master whose start took long votes again before it acts."""

from __future__ import annotations

from typing import Any

import pytest
from jumping_clock import JumpingClock

from ganeti.config.changes import Author

LIMIT = 15


@pytest.mark.parametrize(("limit", "passed", "votes"), [(LIMIT, 1, 0), (LIMIT, 6, 1), (0, 600, 0)])
def test_a_claim_that_is_old_is_made_again(
    master: Any, monkeypatch: pytest.MonkeyPatch, limit: int, passed: float, votes: int
) -> None:
    core, clock, seen = master.core, JumpingClock(), list[dict[str, Any]]()
    mastership = core.mastership
    core.replication.alone = False
    core.store.change(
        "cluster-modify", Author(), lambda draft: draft.update_cluster(auto_failover_after=limit)
    )
    monkeypatch.setattr(mastership, "vote", lambda **options: seen.append(options))
    monkeypatch.setattr(mastership, "_clock", clock)
    mastership._claimed = clock.monotonic()
    clock.ahead = passed
    mastership.renew_claim()
    assert len(seen) == votes
