"""Random schedules of faults on real daemons that have leases, with fence devices and guests.

``make check-leases`` plays 200 of them. ``LEASE_SCHEDULES`` is their number (default: none),
``LEASE_SEED`` the first seed, ``LEASE_CLUSTERS`` how many clusters run side by side, and
``LEASE_LOGS`` a directory for the story and the logs of each one.

Seeds 3, 5, 6 and 8 found that reports of ended guests were lost at a frozen or deposed master, so
that guests were down until the next run of the watcher; seed 8 that a candidate waited a minute for
the end of a frozen master daemon, in which all nodes lost their leases.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from lease_chaos import LeaseSchedule
from lease_cluster import NODES, destroy, make_cluster
from lease_plan import make_plan
from net_cluster import needs_networks
from schedule_runner import keep_logs, play_all

SCHEDULES = int(os.environ.get("LEASE_SCHEDULES", "0"))
FIRST = int(os.environ.get("LEASE_SEED", "1"))
CLUSTERS = int(os.environ.get("LEASE_CLUSTERS", "1"))
TARGET = os.environ.get("LEASE_LOGS")
LOGS = ("story", "nodes/*/var/log/ganeti/*.log", "nodes/power.log")

pytestmark = [
    pytest.mark.long,
    pytest.mark.root,
    pytest.mark.skipif(not SCHEDULES, reason="takes minutes; make check-leases runs it"),
    needs_networks(),
]


def play(directory: Path, seed: int) -> str:
    """Play one schedule; its last lines."""
    plan = make_plan(seed, NODES)
    cluster = make_cluster(directory, plan)
    schedule = LeaseSchedule(cluster, plan)
    try:
        schedule.run()
        return "; ".join(line.partition("  ")[2] for line in schedule.story[-3:])
    finally:
        Path(directory, "story").write_text("\n".join(schedule.story))
        keep_logs(directory, LOGS, TARGET, seed)
        destroy(cluster)


@pytest.mark.timeout(24 * 3600)
def test_random_schedules(tmp_path: Path) -> None:
    seeds = range(FIRST, FIRST + SCHEDULES)
    failures = play_all(tmp_path, play, seeds, min(CLUSTERS, SCHEDULES))
    assert not failures, "\n\n".join(failures)
