"""Masters are cut off, frozen, killed and replaced: nothing that was acknowledged may be lost.

``PARTITION_SCHEDULES`` is the number of random schedules (default: 1), ``PARTITION_SEED`` the
first seed, ``PARTITION_CLUSTERS`` how many clusters run side by side.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import chaos
import pytest
from net_cluster import NetCluster, needs_networks

SCHEDULES = int(os.environ.get("PARTITION_SCHEDULES", "1"))
FIRST = int(os.environ.get("PARTITION_SEED", "1"))
CLUSTERS = int(os.environ.get("PARTITION_CLUSTERS", "1"))


pytestmark = [
    pytest.mark.long,
    pytest.mark.root,
    needs_networks(),
]


class Runner(threading.Thread):
    """Runs schedules on one cluster until there are none left, or one fails."""

    def __init__(self, directory: Path, seeds: Iterator[int], lock: threading.Lock) -> None:
        super().__init__(name=directory.name, daemon=True)
        self._directory = directory
        self._seeds = seeds
        self._lock = lock
        self.failures: list[str] = []
        self.done: list[str] = []

    def run(self) -> None:
        try:
            cluster = NetCluster(self._directory, 5)
        except Exception as err:
            self.failures.append(f"no cluster: {err}")
            return
        try:
            while not self.failures:
                with self._lock:
                    seed = next(self._seeds, None)
                if seed is None:
                    return
                schedule = chaos.Schedule(cluster, seed)
                try:
                    schedule.run()
                    self.done.append(f"seed {seed}: {schedule.story[-1]}")
                except Exception as err:
                    self.failures.append(str(err) or repr(err))
                    self._keep_logs(seed)
        finally:
            cluster.destroy()

    def _keep_logs(self, seed: int) -> None:
        """Copy what the daemons wrote to where PARTITION_LOGS points."""
        target = os.environ.get("PARTITION_LOGS")
        if not target:
            return
        for path in self._directory.glob("node*/var/log/ganeti/*.log"):
            copy = Path(target) / str(seed) / path.relative_to(self._directory)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())


@pytest.mark.timeout(3600)
def test_random_schedules(tmp_path: Path) -> None:
    seeds = iter(range(FIRST, FIRST + SCHEDULES))
    lock = threading.Lock()
    runners = [
        Runner(tmp_path / f"c{number}", seeds, lock) for number in range(min(CLUSTERS, SCHEDULES))
    ]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    for runner in runners:
        print("\n".join(runner.done))
    failures = [text for runner in runners for text in runner.failures]
    assert not failures, "\n\n".join(failures)
