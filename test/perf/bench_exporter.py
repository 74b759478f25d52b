"""A monitoring exporter: everything in bulk, every second, while many jobs run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from measure import Cluster, Figures, delay, say, spread

#: What one poll asks for, one after the other.
POLL = (
    "/2/info",
    "/2/nodes?bulk=1",
    "/2/instances?bulk=1",
    "/2/jobs?bulk=1",
    "/2/groups?bulk=1",
)
PERIOD = 1.0


def figures(
    cluster: Cluster, get: Callable[[str], None], polls: int = 30, jobs: int = 200
) -> Figures:
    """Times of polls and of their requests, with so many jobs running, and with a stream of them.

    ``get`` reads a path over a kept connection.
    """
    cluster.run([{"OP_ID": "OP_CLUSTER_SET_PARAMS", "max_running_jobs": jobs}])
    say(f"exporter beside {jobs} running jobs")
    try:
        return {
            "jobs": jobs,
            "idle": _polls(get, polls),
            "running": _measure_beside_running(cluster, get, polls, jobs),
            "changing": _measure_beside_changing(cluster, get, polls, jobs),
        }
    finally:
        cluster.run([{"OP_ID": "OP_CLUSTER_SET_PARAMS", "max_running_jobs": 20}])


def _polls(get: Callable[[str], None], polls: int) -> Figures:
    whole: list[float] = []
    each: dict[str, list[float]] = {path: [] for path in POLL}
    for _ in range(polls):
        begin = time.perf_counter()
        for path in POLL:
            started = time.perf_counter()
            get(path)
            each[path].append(time.perf_counter() - started)
        whole.append(time.perf_counter() - begin)
        time.sleep(max(0.0, PERIOD - whole[-1]))  # a poll each period is the load
    requests = [seconds for times in each.values() for seconds in times]
    return {
        "poll": spread(whole),
        "request": spread(requests),
        **{path: spread(times) for path, times in each.items()},
    }


def _measure_beside_running(
    cluster: Cluster, get: Callable[[str], None], polls: int, jobs: int
) -> Figures:
    """The jobs run all the time and do nothing else."""
    seconds = polls * PERIOD + 5
    made = cluster.client.submit_many_jobs([[delay(seconds)] for _ in range(jobs)])
    time.sleep(2)  # as many as may run have begun; no event tells how many that are
    statuses = [
        row[0]
        for row in cluster.client.query_jobs(
            [item.job_id for item in made if item.job_id is not None], ["status"]
        )
    ]
    found = _polls(get, polls)
    for item in made:
        cluster.wait(int(item.job_id or 0))
    return {"running": statuses.count("running"), **found}


def _measure_beside_changing(
    cluster: Cluster, get: Callable[[str], None], polls: int, jobs: int
) -> Figures:
    """Jobs of a second each begin and end all the time, so many at once."""
    stop = threading.Event()
    finished = 0

    def feed() -> None:
        nonlocal finished
        from ganeti.luxi.client import Client

        with Client() as client:
            while not stop.is_set():
                made = client.submit_many_jobs([[delay(1.0)] for _ in range(jobs)])
                for item in made:
                    client.wait_for_job_change(int(item.job_id or 0), ["end_ts"], [None], None, 30)
                finished += len(made)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        found = _polls(get, polls)
    finally:
        stop.set()
        feeder.join()
    return {"jobs_finished": finished, **found}
