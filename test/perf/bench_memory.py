#!/usr/bin/env python3
"""What load does to the master daemon: seconds, processor seconds and memory, as JSON.

One cluster of one node (fake hypervisor) in a temporary directory. Parts:

- ``one_job``: a job of many opcodes beside as many jobs of one opcode;
- ``rounds``: jobs, queries and remote requests, archived, again and again: memory must level off;
- ``restart``: from the start of the daemon until it answers, with many queued jobs.

``--only rounds`` runs one part; the counts are options, so that a slow version can be measured too.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench_rapi import Api
from measure import Cluster, Figures, delay, say

from ganeti import constants, errors, paths
from ganeti.base import daemon

_TICKS = os.sysconf("SC_CLK_TCK")
#: Seconds after which the daemon has given back the memory that it needs no more.
REST = 17.0
#: Jobs of one request.
PART = 500


class Meter:
    """Processor time and memory of the master daemon, read from /proc."""

    def __init__(self, cluster: Cluster) -> None:
        self._pid_file = paths.Paths(cluster.root).pid_file(constants.MASTERD)

    def _proc(self) -> Path:
        return Path(f"/proc/{daemon.running_pid(self._pid_file)}")

    def cpu(self) -> float:
        """User and system seconds since the daemon started."""
        words = (self._proc() / "stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / _TICKS

    def resident(self, key: str = "VmRSS") -> float:
        """Resident memory in MB; ``VmHWM`` for the most it has been."""
        for line in (self._proc() / "status").read_text().splitlines():
            if line.startswith(f"{key}:"):
                return round(int(line.split()[1]) / 1024, 1)
        raise SystemExit("the master daemon does not run")

    def written(self) -> float:
        """MB it has written."""
        for line in (self._proc() / "io").read_text().splitlines():
            if line.startswith("wchar:"):
                return int(line.split()[1]) / 1e6
        return 0.0

    def during(self, work: Callable[[], None]) -> Figures:
        """What some work costs."""
        before, written = self.resident(), self.written()
        begin, cpu = time.perf_counter(), self.cpu()
        work()
        return {
            "seconds": round(time.perf_counter() - begin, 2),
            "cpu_seconds": round(self.cpu() - cpu, 2),
            "written_mb": round(self.written() - written, 1),
            "mb_before": before,
            "mb_after": self.resident(),
            "mb_most": self.resident("VmHWM"),
        }


def submit(cluster: Cluster, count: int) -> list[int]:
    """Jobs of one opcode that does nothing; their ids."""
    ids: list[int] = []
    for begin in range(0, count, PART):
        jobs = [[delay()] for _ in range(min(PART, count - begin))]
        ids += [int(item.job_id or 0) for item in cluster.client.submit_many_jobs(jobs)]
    return ids


def run_jobs(cluster: Cluster, count: int) -> None:
    for number in reversed(submit(cluster, count)):
        cluster.wait(number)


def archive(cluster: Cluster) -> None:
    """Archive all jobs that have ended."""
    while cluster.client.auto_archive_jobs(-1, 30)[1]:
        pass


def measure_job(cluster: Cluster, meter: Meter, count: int) -> Figures:
    """A job of so many opcodes, and so many jobs; the first round warms up."""
    run_jobs(cluster, 100)
    archive(cluster)
    say(f"{count} jobs of one opcode")
    many = meter.during(lambda: run_jobs(cluster, count))
    archive(cluster)
    say(f"one job of {count} opcodes")
    one = meter.during(lambda: cluster.run([delay() for _ in range(count)]))
    archive(cluster)
    time.sleep(REST)
    return {"opcodes": count, "jobs": many, "one_job": one, "mb_archived": meter.resident()}


def rounds(cluster: Cluster, meter: Meter, jobs: int, requests: int, times: int) -> Figures:
    """Resident memory after each round, jobs archived."""
    found = [meter.resident()]
    for number in range(times):
        run_jobs(cluster, jobs)
        for _ in range(jobs):
            cluster.client.query("instance", ["name", "status"])
        api = Api(cluster)  # a connection that was idle for so long is closed
        for _ in range(requests):
            api.get_bytes("/2/instances?bulk=1")
        archive(cluster)
        time.sleep(REST)
        found.append(meter.resident())
        say(f"round {number + 1}: {found[-1]} MB")
    return {"jobs": jobs, "requests": requests, "mb": found}


def restart(cluster: Cluster, meter: Meter, count: int) -> Figures:
    """With so many jobs that a filter rule holds."""
    rule = [["opcode", ["=", "OP_ID", "OP_TEST_DELAY"]]]
    cluster.client.replace_filter(None, 0, rule, "PAUSE", [])
    submit(cluster, count)
    say(f"{count} jobs wait")
    resident = meter.resident()
    cluster.stop_master()
    begin = time.perf_counter()
    starter = threading.Thread(target=cluster.start_master)
    starter.start()
    answers = _first_answer(cluster, begin)
    cluster.run([{"OP_ID": "OP_TAGS_SET", "kind": "cluster", "tags": ["bench"], "name": None}])
    runs = time.perf_counter() - begin
    starter.join()
    return {
        "queued": count,
        "mb_queued": resident,
        "mb_after": meter.resident(),
        "seconds_to_answer": round(answers, 2),
        "seconds_to_end_of_first_job": round(runs, 2),
        "cpu_seconds": meter.cpu(),
    }


def _first_answer(cluster: Cluster, begin: float) -> float:
    while True:
        try:
            cluster.client.query_config_values(["cluster_name"])
        except errors.GanetiError:
            time.sleep(0.02)  # nobody listens yet
        else:
            return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="PART")
    parser.add_argument("--opcodes", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=20_000, help="jobs and queries of a round")
    parser.add_argument("--requests", type=int, default=2000, help="remote requests of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queued", type=int, default=20_000)
    options = parser.parse_args()
    figures: Figures = {"load_before": round(os.getloadavg()[0], 2)}
    with tempfile.TemporaryDirectory(prefix="ganeti-bench-") as temporary:
        parts: dict[str, Callable[[Cluster, Meter], Figures]] = {
            "one_job": lambda c, m: measure_job(c, m, options.opcodes),
            "rounds": lambda c, m: rounds(c, m, options.jobs, options.requests, options.rounds),
            "restart": lambda c, m: restart(c, m, options.queued),
        }
        for name, part in parts.items():
            if options.only in name:
                cluster = Cluster(Path(temporary) / name, 1)
                try:
                    figures[name] = part(cluster, Meter(cluster))
                finally:
                    cluster.destroy()
    json.dump(figures, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
