"""Benchmarks of the engine: waiting jobs, configuration changes, restart. See bench.py."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from measure import Cluster, Figures, create, delay, say, spread
from synthetic import fill

from ganeti import constants, paths

LOCKED = "locked.example.com"


def waiting_jobs(cluster: Cluster, counts: tuple[int, ...] = (0, 1000, 10_000)) -> Figures:
    """From the submit of a job to its start, beside so many jobs that wait for one instance."""
    cluster.run([create(LOCKED, cluster.names[0])])
    hold = cluster.client.submit_job([{"OP_ID": "OP_INSTANCE_SHUTDOWN", "instance_name": LOCKED}])
    cluster.wait(hold)
    figures: Figures = {}
    rest = cluster.resident_mb()["ganeti-masterd"]
    blocker = _hold_lock(cluster)
    queued: list[int] = []
    for count in counts:
        for _ in range((count - len(queued)) // 500):
            jobs = cluster.client.submit_many_jobs([[_touch()] for _ in range(500)])
            queued += [int(item.job_id or 0) for item in jobs]
        say(f"{len(queued)} jobs wait")
        _let_files_follow(cluster)
        figures[str(count)] = spread([_start_time(cluster) for _ in range(200)])
    if queued:
        grown = cluster.resident_mb()["ganeti-masterd"] - rest
        figures["memory_per_waiting_job_kb"] = round(grown * 1024 / len(queued), 2)
        figures["restart_seconds"] = _restart(cluster)
    for number in [*queued, blocker]:
        cluster.client.cancel_job(number)
    cluster.client.auto_archive_jobs(-1, 60)
    return figures


def _let_files_follow(cluster: Cluster) -> None:
    """Wait until the files of the jobs have followed their journal: what is measured is rest."""
    journal = paths.Paths(cluster.root).queue / "journal"
    while journal.stat().st_size:
        time.sleep(0.1)  # no event tells that a file of another process is empty


def _touch() -> dict[str, Any]:
    return {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": LOCKED}


def _hold_lock(cluster: Cluster) -> int:
    """A job that holds the instance's lock for a long time (its node is slow to start it)."""
    script = cluster.root / "etc/ganeti/fake-hypervisor.json"
    script.write_text('{"start": {"*": {"delay": 60}}}')
    number = cluster.client.submit_job([_touch()])
    while cluster.client.query_jobs([number], ["status"])[0][0] != "running":
        time.sleep(0.05)  # once per run; not part of what is measured
    return number


def _start_time(cluster: Cluster) -> float:
    """Seconds from the submit call to the moment the operation ran, by the job's own stamps."""
    number = cluster.client.submit_job([delay()])
    cluster.wait(number)
    row = cluster.client.query_jobs([number], ["received_ts", "opexec"])[0]
    received, (begun,) = row
    return float((begun[0] - received[0]) + (begun[1] - received[1]) / 1e6)


def _restart(cluster: Cluster) -> float:
    """Seconds from the start of the master daemon until it answers, with all jobs queued."""
    cluster.stop_master()
    begin = time.perf_counter()
    cluster.start_master()
    cluster.client.query_config_values(["cluster_name"])
    return round(time.perf_counter() - begin, 2)


def fill_archive(root: Path, count: int) -> None:
    """Make an archive of so many jobs; all are links to a few files (65,000 to each at most)."""
    queue = paths.Paths(root).queue
    (queue / "serial").write_text(f"{count}\n")
    each = constants.JOBS_PER_ARCHIVE_DIR
    for begin in range(0, count, each):
        directory = queue / "archive" / str(begin // each)
        directory.mkdir(exist_ok=True)
        first = directory / f"job-{begin + each - 1}"
        first.write_text('{"id": 1, "ops": []}')
        for number in range(max(begin, 2000), begin + each - 1):
            os.link(first, directory / f"job-{number}")


def configuration_changes(
    directory: Path, counts: tuple[int, ...] = (100, 1000, 5000), runs: int = 100
) -> Figures:
    """One tag set by a job, in clusters of growing size: the whole job, and the change alone."""
    figures: Figures = {}
    for count in counts:
        cluster = Cluster(directory / f"config{count}", 3)
        try:
            cluster.stop_master()
            fill(cluster.root, count)
            say(f"{count} instances")
            alone = _change_alone(directory, cluster, runs)
            cluster.start_master()
            time.sleep(2.0)  # the other candidates get the whole configuration first
            figures[str(count)] = {
                "change_alone": alone,
                "job_with_one_change": spread([_tag(cluster, n) for n in range(runs)]),
            }
        finally:
            cluster.destroy()
    return figures


def _tag(cluster: Cluster, number: int) -> float:
    job = [{"OP_ID": "OP_TAGS_SET", "kind": "cluster", "tags": [f"bench{number}"], "name": None}]
    begin = time.perf_counter()
    cluster.run(job)
    return time.perf_counter() - begin


def _change_alone(directory: Path, cluster: Cluster, runs: int) -> Figures:
    """Changes of one instance on a copy of the state, without a daemon and without copies."""
    script = Path(__file__).with_name("change_once.py")
    copy = directory / "copy"
    subprocess.run(["cp", "-a", str(cluster.root), str(copy)], check=True)
    try:
        result = subprocess.run(
            [sys.executable, str(script), str(copy), str(runs)],
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        subprocess.run(["rm", "-rf", str(copy)], check=True)
    return spread([float(word) for word in result.stdout.split()])
