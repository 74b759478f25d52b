#!/usr/bin/env python3
"""Benchmarks: figures as JSON on standard output, progress on standard error.

Clusters are real ones of tools/local-cluster (fake hypervisor) in a temporary directory; nothing
is left behind. Times are wall-clock milliseconds unless a name says otherwise.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import bench_jobs
import bench_metrics
import bench_placement
import bench_query
import bench_rapi
from measure import Cluster, Figures, create, delay, say, spread, timed

from ganeti import paths

BIN = Path(sys.executable).parent


# benchmarks -----------------------------------------------------------------------------------


def jobs_per_second(cluster: Cluster, count: int = 1000) -> Figures:
    """No-op jobs from the first byte sent to the last job's end."""
    begin = time.perf_counter()
    jobs = cluster.client.submit_many_jobs([[delay()] for _ in range(count)])
    submitted = time.perf_counter()
    for item in reversed(jobs):
        cluster.wait(int(item.job_id or 0))
    total = time.perf_counter() - begin
    return {
        "jobs": count,
        "jobs_per_second": round(count / total, 1),
        "submit_seconds": round(submitted - begin, 3),
        "total_seconds": round(total, 3),
    }


def jobs_with_one_candidate(cluster: Cluster) -> Figures:
    """The same when no other node keeps copies of the state."""
    with _limit_to_one_candidate(cluster):
        return jobs_per_second(cluster)


@contextlib.contextmanager
def _limit_to_one_candidate(cluster: Cluster) -> Iterator[None]:
    _set_pool(cluster, 1)
    try:
        yield
    finally:
        _set_pool(cluster, 10)
        time.sleep(2.0)  # the other candidates get everything first


def _set_pool(cluster: Cluster, size: int) -> None:
    cluster.run([{"OP_ID": "OP_CLUSTER_SET_PARAMS", "candidate_pool_size": size}])


def measure_job(cluster: Cluster, runs: int = 50) -> Figures:
    """One job from submit to success, and the submit call alone."""
    whole, submit = [], []
    for _ in range(runs):
        begin = time.perf_counter()
        number = cluster.client.submit_job([delay()])
        submit.append(time.perf_counter() - begin)
        cluster.wait(number)
        whole.append(time.perf_counter() - begin)
    return {"submit_to_success": spread(whole), "submit_call": spread(submit)}


def measure_job_without_copies(cluster: Cluster) -> Figures:
    """The same when no other node keeps copies of the state."""
    with _limit_to_one_candidate(cluster):
        return measure_job(cluster)


def instance_life(cluster: Cluster, runs: int = 10) -> Figures:
    """Add (with a file disk, an OS script and start), stop, start and remove, one by one."""
    times: dict[str, list[float]] = {"add": [], "stop": [], "start": [], "remove": []}
    for number in range(runs):
        name = f"life{number}.example.com"
        target = {"instance_name": name}
        for what, job in (
            ("add", create(name, cluster.names[number % len(cluster.names)])),
            ("stop", {"OP_ID": "OP_INSTANCE_SHUTDOWN", **target}),
            ("start", {"OP_ID": "OP_INSTANCE_STARTUP", **target}),
            ("remove", {"OP_ID": "OP_INSTANCE_REMOVE", **target}),
        ):
            times[what].append(timed(lambda job=job: cluster.run([job])))  # type: ignore[misc]
    return {what: spread(seconds) for what, seconds in times.items()}


def parallel_adds(cluster: Cluster, count: int = 20) -> Figures:
    """Instances added at the same time over all nodes."""
    names = [f"par{n}.example.com" for n in range(count)]
    jobs = [[create(name, cluster.names[n % len(cluster.names)])] for n, name in enumerate(names)]
    begin = time.perf_counter()
    for item in cluster.client.submit_many_jobs(jobs):
        cluster.wait(int(item.job_id or 0))
    seconds = time.perf_counter() - begin
    removed = cluster.client.submit_many_jobs(
        [[{"OP_ID": "OP_INSTANCE_REMOVE", "instance_name": name}] for name in names]
    )
    for item in removed:
        cluster.wait(int(item.job_id or 0))
    return {"instances": count, "seconds": round(seconds, 3)}


def commands(_cluster: Cluster, runs: int = 15) -> Figures:
    """Wall time of commands beside that of an empty Python program."""
    argvs = {
        "python3 -c pass": [sys.executable, "-c", "pass"],
        "gnt-cluster version": [str(BIN / "gnt-cluster"), "version"],
        "gnt-instance list": [str(BIN / "gnt-instance"), "list"],
    }
    times: dict[str, list[float]] = {name: [] for name in argvs}
    for _ in range(runs):
        for name, argv in argvs.items():
            times[name].append(
                timed(lambda a=argv: subprocess.run(a, check=True, stdout=subprocess.DEVNULL))  # type: ignore[misc]
            )
    result: Figures = {name: spread(seconds) for name, seconds in times.items()}
    empty = result["python3 -c pass"]["median_ms"]
    for figures in result.values():
        figures["times_python"] = round(figures["median_ms"] / empty, 2)
    return result


def memory_with_jobs(cluster: Cluster, count: int = 50) -> Figures:
    """Resident memory while jobs run; the cluster is told to let so many run."""
    cluster.run([{"OP_ID": "OP_CLUSTER_SET_PARAMS", "max_running_jobs": count}])
    jobs = cluster.client.submit_many_jobs([[delay(3.0)] for _ in range(count)])
    numbers = [int(item.job_id or 0) for item in jobs]
    time.sleep(1.0)  # the middle of what runs: its memory is measured
    rows = cluster.client.query_jobs(numbers, ["status"])
    figures = cluster.resident_mb()
    for number in numbers:
        cluster.wait(number)
    return {**figures, "running": sum(row[0] == "running" for row in rows)}


def node_calls(cluster: Cluster, runs: int = 200) -> Figures:
    """A call to one node daemon over a kept connection, and one to all nodes at once."""
    from ganeti.model.node import Node
    from ganeti.net.tls.contexts import Identity
    from ganeti.rpc.calls import NodeCalls
    from ganeti.rpc.client import NodeRpc

    where = paths.Paths(cluster.root)
    rows = cluster.client.query_nodes([], ["name", "uuid", "pip"])
    nodes = [
        Node(uuid=uuid, name=name, primary_ip=ip, secondary_ip=ip, group="")
        for name, uuid, ip in rows
    ]
    rpc = NodeRpc(Identity(where.client_cert, where.ca_cert).client_context())
    try:
        first = timed(lambda: rpc.call_many(nodes, NodeCalls.version))
        one = [timed(lambda: rpc.call_one(nodes[0], NodeCalls.version)) for _ in range(runs)]
        every = [timed(lambda: rpc.call_many(nodes, NodeCalls.version)) for _ in range(20)]
    finally:
        rpc.stop()
    return {
        "nodes": len(nodes),
        "one_node": spread(one),
        "all_nodes": spread(every),
        "all_nodes_first_ms": round(first * 1000, 1),
    }


# all together ---------------------------------------------------------------------------------


def small_cluster(directory: Path) -> Figures:
    with _cluster(directory, 3) as cluster:
        say("memory at rest")
        figures: Figures = {
            "cluster_start_seconds": round(cluster.start_seconds, 2),
            "memory_at_rest_mb": cluster.resident_mb(),
        }
        for name, work in (
            ("no_op_jobs", jobs_per_second),
            ("no_op_jobs_one_candidate", jobs_with_one_candidate),
            ("one_job", measure_job),
            ("one_job_one_candidate", measure_job_without_copies),
            ("instances", instance_life),
            ("parallel_adds", parallel_adds),
            ("commands", commands),
            ("memory_with_50_jobs_mb", memory_with_jobs),
            ("node_calls", node_calls),
        ):
            say(name)
            figures[name] = work(cluster)
        figures["memory_afterwards_mb"] = cluster.resident_mb()
        return figures


def waiting_jobs(directory: Path) -> Figures:
    with _cluster(directory, 3) as cluster:
        return bench_jobs.waiting_jobs(cluster)


def archived_jobs(directory: Path, count: int = 100_000) -> Figures:
    """Submission beside a large archive."""
    with _cluster(directory, 1) as cluster:
        before = {"jobs": jobs_per_second(cluster), "one_job": measure_job(cluster)}
        cluster.stop_master()
        bench_jobs.fill_archive(cluster.root, count)
        begin = time.perf_counter()
        cluster.start_master()
        cluster.client.query_config_values(["cluster_name"])
        started = round(time.perf_counter() - begin, 2)
        after = {"jobs": jobs_per_second(cluster), "one_job": measure_job(cluster)}
        return {"0": before, str(count): after, "restart_seconds": started}


def large_cluster(directory: Path, nodes: int) -> Figures:
    with _cluster(directory, nodes) as cluster:
        say(f"calls to {nodes} nodes")
        return {
            "cluster_start_seconds": round(cluster.start_seconds, 2),
            "node_calls": node_calls(cluster),
            "no_op_jobs_ten_candidates": jobs_per_second(cluster),
            "no_op_jobs_one_candidate": jobs_with_one_candidate(cluster),
            "placement": bench_placement.figures(cluster, 1000),
            "queries": bench_query.figures(cluster),
        }


def remote_api(directory: Path) -> Figures:
    with _cluster(directory, 3) as cluster:
        return {
            **bench_rapi.figures(cluster, (200, 1000)),
            "metrics": bench_metrics.figures(cluster, 1000),
        }


@contextlib.contextmanager
def _cluster(directory: Path, nodes: int) -> Iterator[Cluster]:
    say(f"starting {nodes} nodes")
    cluster = Cluster(directory, nodes)
    try:
        yield cluster
    finally:
        cluster.destroy()


def machine() -> Figures:
    load = os.getloadavg()[0]
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "load_before": round(load, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", type=int, default=40, help="nodes of the large cluster; 0: none")
    parser.add_argument("--only", default="", metavar="PART", help="parts whose name contains this")
    options = parser.parse_args()
    figures: Figures = {"machine": machine()}
    with tempfile.TemporaryDirectory(prefix="ganeti-bench-") as temporary:
        base = Path(temporary)
        parts = {
            "three_nodes": lambda: small_cluster(base / "small"),
            "waiting_jobs": lambda: waiting_jobs(base / "waiting"),
            "archived_jobs": lambda: archived_jobs(base / "archived"),
            "rapi": lambda: remote_api(base / "rapi"),
            "configuration_changes": lambda: bench_jobs.configuration_changes(base),
        }
        if options.large:
            parts[f"{options.large}_nodes"] = lambda: large_cluster(base / "large", options.large)
        for name, part in parts.items():
            if options.only in name:
                figures[name] = part()
    json.dump(figures, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
