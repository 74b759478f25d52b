#!/usr/bin/env python3
"""Benchmarks of queries on synthetic instances: figures as JSON on standard output.

One instance is made by the running cluster; its copies are written into the configuration while
the cluster is stopped, and into the run directories of the fake hypervisor, so that node daemons
report them as running. Everything that is measured is real: daemons, sockets, commands.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from measure import TOOL, Cluster, Figures, say

from ganeti import paths
from ganeti.config.store import read_config, write_checkpoint
from ganeti.luxi.client import Client

#: Columns of gnt-instance list; the first four come from the configuration.
STATIC = ["name", "hypervisor", "os", "pnode"]
LIVE = [*STATIC, "status", "oper_ram"]
MODEL = "model.example.com"
CLIENTS = 8
JOBS = 200


# instances ------------------------------------------------------------------------------------


def make_model(cluster: Cluster) -> None:
    """The one real instance: two disks, two NICs."""
    cluster.run(
        [
            {
                "OP_ID": "OP_INSTANCE_CREATE",
                "instance_name": MODEL,
                "mode": "create",
                "disk_template": "file",
                "disks": [{"size": 8}, {"size": 8}],
                "nics": [{"ip": "192.0.2.1"}, {}],
                "pnode": cluster.names[-1],
                "os_type": "noop",
                "hypervisor": "fake",
                "ip_check": False,
                "name_check": False,
                "start": True,
                "wait_for_sync": True,
            }
        ]
    )


def fill(cluster: Cluster, count: int) -> None:
    """Have exactly ``count`` instances, spread over all nodes; restarts all daemons."""
    cluster.client.close()
    _tool("stop", cluster.directory)
    root = cluster.directory / "node1"
    path = paths.Paths(root).config_file
    config = json.loads(path.read_text())
    nodes = sorted(config["nodes"].values(), key=lambda node: str(node["name"]))
    model = next(i for i in config["instances"].values() if i["name"] == MODEL)
    guest = _guest(cluster, cluster.names[-1].partition(".")[0], MODEL).read_bytes()
    extra = [i for i in config["instances"].values() if i["name"] != MODEL]
    for item in extra:
        del config["instances"][item["uuid"]]
        for disk in item["disks"]:
            del config["disks"][disk]
    for number in range(1, count):
        node = nodes[number % len(nodes)]
        item = _copy(config, model, number, node)
        file = _guest(cluster, node["name"].partition(".")[0], item["name"])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(guest)
    config["serial_no"] += 1
    path.write_text(json.dumps(config, separators=(",", ":")))
    where = paths.Paths(root)
    write_checkpoint(read_config(where, edited=True), where)  # the master takes no edited file
    _tool("start", cluster.directory)


def _copy(config: Figures, model: Figures, number: int, node: Figures) -> Figures:
    item = copy.deepcopy(model)
    item.update(
        uuid=str(uuid.uuid4()), name=f"web{number}.example.com", primary_node=node["uuid"], disks=[]
    )
    for index, nic in enumerate(item["nics"]):
        nic["uuid"] = str(uuid.uuid4())
        nic["mac"] = f"aa:00:0{index}:{number >> 16:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"
    for original in model["disks"]:
        disk = copy.deepcopy(config["disks"][original])
        disk["uuid"] = str(uuid.uuid4())
        if disk.get("nodes"):
            disk["nodes"] = [node["uuid"]]
        config["disks"][disk["uuid"]] = disk
        item["disks"].append(disk["uuid"])
    config["instances"][item["uuid"]] = item
    return item


def _guest(cluster: Cluster, node: str, instance: str) -> Path:
    return paths.Paths(cluster.directory / node).run / "fake-hypervisor" / instance


def _tool(verb: str, directory: Path) -> None:
    subprocess.run([*TOOL, verb, "--dir", str(directory)], check=True, stdout=sys.stderr)


# measuring ------------------------------------------------------------------------------------


def spread(seconds: Sequence[float]) -> Figures:
    """Median, best and 99th percentile in milliseconds."""
    ordered = sorted(seconds)
    return {
        "median_ms": round(statistics.median(ordered) * 1000, 3),
        "best_ms": round(ordered[0] * 1000, 3),
        "p99_ms": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1000, 3),
        "runs": len(ordered),
    }


def repeat(work: Callable[[], object], seconds: float = 3.0, least: int = 7) -> Figures:
    """Do something again and again, after two rounds that do not count."""
    times: list[float] = []
    work()
    work()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < least:
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
        if len(times) >= 500:
            break
    return spread(times)


def measure_size(cluster: Cluster, count: int) -> Figures:
    """All figures for a number of instances."""
    fill(cluster, count)
    client = cluster.client
    rows = client.query("instance", LIVE).data
    running = sum(row[4] == (0, "running") for row in rows)
    if (len(rows), running) != (count, count):
        raise SystemExit(f"{len(rows)} instances, {running} of them run, instead of {count}")
    name = f"web{count // 2}.example.com"

    def luxi(fields: list[str], qfilter: Any = None) -> Callable[[], object]:
        return lambda: client.call("Query", "instance", fields, qfilter)

    return {
        "configuration_columns": repeat(luxi(STATIC)),
        "one_column": repeat(luxi(["name"])),
        "live_columns": repeat(luxi(LIVE)),
        "by_name": repeat(luxi(STATIC, ["==", "name", name])),
        "regex": repeat(luxi(STATIC, ["=~", "name", "^web[0-9]*7\\.example"])),
        "gnt_instance_list": repeat(_command("gnt-instance", "list")),
        "gnt_instance_list_json": repeat(_command("gnt-instance", "list", "--format", "json")),
        f"{CLIENTS}_clients_and_{JOBS}_jobs": {
            "live_columns": crowd(cluster, LIVE),
            "configuration_columns": crowd(cluster, STATIC),
        },
    }


def _command(program: str, *words: str) -> Callable[[], object]:
    argv = [str(Path(sys.executable).parent / program), *words]
    # Compiled modules are kept, as an installation has them.
    env = {**os.environ, "PYTHONPYCACHEPREFIX": tempfile.gettempdir() + "/ganeti-bench-cache"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return lambda: subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, env=env)


def crowd(cluster: Cluster, fields: list[str], seconds: float = 6.0) -> Figures:
    """Clients in processes of their own that ask again and again while jobs run."""
    delay = {"OP_ID": "OP_TEST_DELAY", "duration": 0.5, "on_master": True, "no_locks": True}
    submitted = cluster.client.submit_many_jobs([[delay] for _ in range(JOBS)])
    numbers = [int(item.job_id or 0) for item in submitted]
    with multiprocessing.get_context("fork").Pool(CLIENTS) as pool:
        pool.map(_warm, range(CLIENTS), chunksize=1)
        begin = time.perf_counter()
        parts = pool.starmap(_ask, [(fields, seconds)] * CLIENTS, chunksize=1)
        elapsed = time.perf_counter() - begin
    times = list(itertools.chain.from_iterable(parts))
    rows = cluster.client.query_jobs(numbers, ["status"])
    for number in numbers:
        cluster.wait(number)
    return {
        "queries_per_second": round(len(times) / elapsed, 1),
        **spread(times),
        "jobs_done_meanwhile": sum(row[0] == "success" for row in rows),
    }


def _warm(_number: int) -> None:
    time.sleep(0.05)  # so that every process of the pool takes one


def _ask(fields: list[str], seconds: float) -> list[float]:
    times = []
    with Client() as client:
        end = time.perf_counter() + seconds
        while (begin := time.perf_counter()) < end:
            client.call("Query", "instance", fields, None)
            times.append(time.perf_counter() - begin)
    return times


def figures(cluster: Cluster, sizes: Sequence[int] = (200, 1000, 5000)) -> Figures:
    """Figures for each number of instances; the cluster has them afterwards."""
    make_model(cluster)
    result: Figures = {}
    for count in sizes:
        say(f"queries of {count} instances")
        result[f"{count}_instances"] = measure_size(cluster, count)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=40)
    parser.add_argument("--instances", type=int, nargs="*", default=[200, 1000, 5000])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ganeti-bench-") as temporary:
        cluster = Cluster(Path(temporary) / "query", options.nodes)
        try:
            found = figures(cluster, options.instances)
        finally:
            cluster.destroy()
    json.dump({"nodes": options.nodes, "load": os.getloadavg(), **found}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
