"""The master is killed at every step of a renewal of all certificates.

A step is a call to nodes or a write of the configuration or of the authority. Afterwards the master
starts, calls every node, and ``gnt-cluster renew-crypto`` ends what was begun.

``CRASH_POINTS`` says at how many steps: a number, or ``all``; ``CRASH_NODES`` of how many nodes.
"""

from __future__ import annotations

import os
import random
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_run import CHECKPOINT_AFTER
from disk_faults import Point
from load import FINAL, run_job
from master_process import MasterProcess

sys.path.append(str(Path(__file__).parents[1] / "cluster"))

from local_cluster import Cluster, copy_cluster

from ganeti import constants
from ganeti.base import services
from ganeti.net import pem

SAMPLE = 2
_STEPS = re.compile(
    r"serve: (call (crypto_|write_ssconf|upload_file)|(write|fsync|rename) .*(journal|ca\.\w+)$)"
)
RENEWAL = {"OP_ID": "OP_CLUSTER_RENEW_CRYPTO", "new_cluster_certificate": True}
NODES = tuple(f"node{n}" for n in range(1, int(os.environ.get("CRASH_NODES", "3")) + 1))


class Renewals:
    """A cluster whose master can be killed at a step."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster = cluster
        paths = cluster.paths()
        services.stop(constants.MASTERD, paths)
        self.socket = paths.luxi_socket
        log = directory / "master.log"
        self.master = MasterProcess(cluster.env(), directory / "runs", log, CHECKPOINT_AFTER)

    def begin(self, point: Point | None = None, *, trace: bool = False) -> None:
        assert self.master.start(point, trace=trace, calls=True)

    def run(self) -> None:
        """Renew everything; returns when the job or the master has ended."""
        run_job(self.socket, RENEWAL, self.master.died)

    def points(self) -> list[Point]:
        self.master.end(signal.SIGTERM)
        self.begin(trace=True)
        before = len(self.master.labels)
        self.run()
        counts: Counter[str] = Counter(self.master.labels[:before])
        found: list[Point] = []
        for label in self.master.labels[before:]:
            counts[label] += 1
            if _STEPS.match(label):
                found += [Point(label, counts[label], way) for way in ("before", "after")]
        return found

    def kill_at(self, point: Point) -> bool:
        """Let the master die at a step, and end the renewal."""
        self.master.end(signal.SIGTERM)
        self.begin(point)
        self.run()
        self.master.end(signal.SIGKILL)
        killed = self.master.killed_at == str(point)
        self.begin()
        for job, status in self.cluster.cells("job list -o id,status"):
            if status not in FINAL:  # it had not begun, so it begins again
                self.cluster.gnt("job wait", job)
        every = self.cluster.cells("node list -o name,mtotal")
        assert all(total.isdigit() or total[0].isdigit() for _name, total in every), (point, every)
        self.cluster.ok("cluster renew-crypto")
        assert self.cluster.ok("cluster verify").err == "", point
        files = [self.cluster.paths(node).ca_cert.read_bytes() for node in NODES]
        assert len(set(files)) == 1, point
        assert len(pem.split(files[0])) == 1, point
        return killed


@pytest.fixture
def renewals(tmp_path: Path) -> Iterator[Renewals]:
    with copy_cluster(len(NODES)) as cluster:
        made = Renewals(cluster, tmp_path)
        try:
            made.begin()
            yield made
        finally:
            made.master.close()


@pytest.mark.timeout(1800)
def test_killed_at_a_step_of_a_renewal(renewals: Renewals) -> None:
    points = renewals.points()
    assert len(points) >= 20
    asked = os.environ.get("CRASH_POINTS", "")
    if asked != "all":
        points = random.Random(1).sample(points, int(asked or SAMPLE))
    killed = [renewals.kill_at(point) for point in points]
    assert sum(killed) * 2 >= len(points)
