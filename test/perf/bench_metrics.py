#!/usr/bin/env python3
"""Benchmarks of ``/metrics``: figures as JSON on standard output.

The first scrape waits for the master and for the text; the others get what is kept. Memory is that
of the daemon of the remote API.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import bench_query
from bench_query import repeat
from bench_rapi import Api
from measure import Cluster, Figures, delay, say, timed

from ganeti import constants, paths
from ganeti.base import daemon
from ganeti.model.metrics import METRICS, Report
from ganeti.rapi import exposition, scrapes

PATH = "/metrics"
#: Nodes measure every ten seconds, and are asked every ten seconds.
_PATIENCE = 60.0


def figures(cluster: Cluster, instances: int, jobs: int = 1000) -> Figures:
    """Figures of a cluster that has so many running instances, just started."""
    say(f"metrics with {instances} instances")
    api = Api(cluster)
    try:
        wait_for_samples(cluster, instances)
        before = resident_mb(cluster)
        first = timed(lambda: api.get_bytes(PATH))
        report = cluster.client.query_metrics()
        text = exposition.write(report.items())
        result: Figures = {
            "values": count_values(report),
            "kilobytes": round(api.size(PATH) / 1024),
            "gzip_kilobytes": round(api.size(PATH, Accept_Encoding="gzip") / 1024),
            "first_scrape_ms": round(first * 1000, 1),
            "scrape": repeat(lambda: api.get_bytes(PATH)),
            "scrape_gzip": repeat(lambda: api.get_bytes(PATH, Accept_Encoding="gzip")),
            "query_metrics": repeat(cluster.client.query_metrics),
            "write_text": repeat(lambda: exposition.write(report.items())),
            "pack_text": repeat(lambda: scrapes.Text.make(text)),
            "rapi_mb_before": before,
            "rapi_mb_after": resident_mb(cluster),
        }
        for item in cluster.client.submit_many_jobs([[delay()] for _ in range(jobs)]):
            cluster.wait(int(item.job_id or 0))
        result["more_values_after_jobs"] = (
            count_values(cluster.client.query_metrics()) - result["values"]
        )
        return {**result, "jobs": jobs}
    finally:
        api.close()


def wait_for_samples(cluster: Cluster, instances: int) -> None:
    """Until the master knows the counters of all instances."""
    end = time.monotonic() + _PATIENCE
    running = 0
    while time.monotonic() < end:
        rows = cluster.client.query_metrics().get("ganeti_instance_running", [])
        running = sum(int(value) for _labels, value in rows)
        if running == instances:
            return
        time.sleep(1.0)  # no event tells of samples
    raise SystemExit(f"the master knows the samples of {running} of {instances} instances")


def count_values(report: Report) -> int:
    """Lines of the text that are no comments; of a histogram its buckets, count and sum."""

    def lines(name: str, row: list[Any]) -> int:
        return len(row[1]) + 2 if METRICS[name].bounds else 1

    return sum(lines(name, row) for name, rows in report.items() for row in rows)


def resident_mb(cluster: Cluster) -> float:
    """Resident memory of the daemon of the remote API."""
    pid = daemon.running_pid(paths.Paths(cluster.root).pid_file(constants.RAPI))
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return round(int(line.split()[1]) / 1024, 1)
    return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--instances", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ganeti-bench-") as temporary:
        cluster = Cluster(Path(temporary) / "metrics", options.nodes)
        try:
            bench_query.make_model(cluster)
            bench_query.fill(cluster, options.instances)
            found = figures(cluster, options.instances)
        finally:
            cluster.destroy()
    json.dump({"nodes": options.nodes, "load": os.getloadavg(), **found}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
