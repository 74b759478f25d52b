"""What benchmarks share: a running cluster, and how times are summed up."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(HERE))

from ganeti import constants, paths  # noqa: E402
from ganeti.base import daemon, services  # noqa: E402
from ganeti.luxi.client import Client  # noqa: E402

TOOL = [sys.executable, str(HERE / "tools" / "local-cluster")]
#: The shortest delay that OP_TEST_DELAY accepts.
SHORTEST = 1e-6
Figures = dict[str, Any]


class Cluster:
    """A running local cluster and a LUXI connection to its master."""

    def __init__(self, directory: Path, nodes: int) -> None:
        self.directory = directory
        self.names = [f"node{n}.example.com" for n in range(1, nodes + 1)]
        self.start_seconds = timed(lambda: self._tool("start", "--nodes", str(nodes)))
        self.root = directory / "node1"
        os.environ[paths.ROOTDIR_VARIABLE] = str(self.root)
        os.environ[paths.HOSTNAME_VARIABLE] = self.names[0]
        self.client = Client()

    def _tool(self, verb: str, *words: str) -> None:
        subprocess.run(
            [*TOOL, verb, "--dir", str(self.directory), *words], check=True, stdout=sys.stderr
        )

    def stop_master(self) -> None:
        """Stop the master daemon and wait for its end."""
        self.client.close()
        services.stop(constants.MASTERD, paths.Paths(self.root))

    def start_master(self) -> None:
        services.start(constants.MASTERD, paths.Paths(self.root))

    def destroy(self) -> None:
        self.client.close()
        self._tool("destroy")

    def resident_mb(self) -> dict[str, float]:
        """Resident memory of the daemons of the master node, in MB."""
        where = paths.Paths(self.root)
        pids = {
            name: daemon.running_pid(where.pid_file(name))
            for name in (constants.MASTERD, constants.NODED)
        }
        found = {name: _resident(pid) for name, pid in pids.items() if pid}
        return {**found, "together": round(sum(found.values()), 1)}

    def run(self, job: list[dict[str, Any]]) -> None:
        """Submit a job and wait until it has succeeded."""
        self.wait(self.client.submit_job(job))

    def wait(self, number: int) -> None:
        before: list[Any] | None = None
        while True:
            change = self.client.wait_for_job_change(number, ["status"], before, None, 60)
            if change is None:
                continue
            before = change.values
            if before[0] in ("success", "error", "canceled"):
                break
        if before[0] != "success":
            rows = self.client.query_jobs([number], ["opresult"])
            raise SystemExit(f"job {number} ended with {before[0]}: {rows}")


def _resident(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return round(int(line.split()[1]) / 1024, 1)
    return 0.0


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def spread(seconds: list[float]) -> Figures:
    """Median, best and 99th percentile in milliseconds."""
    ordered = sorted(seconds)
    return {
        "median_ms": round(statistics.median(ordered) * 1000, 2),
        "best_ms": round(ordered[0] * 1000, 2),
        "p99_ms": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1000, 2),
        "runs": len(ordered),
    }


def delay(seconds: float = SHORTEST, *, on_master: bool = True) -> dict[str, Any]:
    return {"OP_ID": "OP_TEST_DELAY", "duration": seconds, "on_master": on_master, "no_locks": True}


def create(name: str, node: str) -> dict[str, Any]:
    return {
        "OP_ID": "OP_INSTANCE_CREATE",
        "instance_name": name,
        "mode": "create",
        "disk_template": "file",
        "disks": [{"size": 8}],
        "nics": [],
        "pnode": node,
        "os_type": "noop",
        "hypervisor": "fake",
        "ip_check": False,
        "name_check": False,
        "start": True,
        "wait_for_sync": True,
    }


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)
