#!/usr/bin/env python3
"""Benchmark of the allocator inside: figures as JSON on standard output.

A real cluster whose configuration gets mirrored instances. Jobs reserve further instances, each
without naming a node. What is measured is written by the master daemon into its log: from the
answers of the nodes to the claim, thus the newest configuration and claims, the choice, and
nothing else. Between two placements the configuration changes, as it does in real life.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measure import Cluster, Figures, say, spread
from synthetic import fill_mirrored

from ganeti import paths

GROUP = "xenvg"
#: What a node says of itself; MiB.
MEMORY = {"memory_total": 65536, "memory_dom0": 1024, "memory_free": 60000, "cpu_total": 32}
DISK = {"vg_size": 4 << 40, "vg_free": 3 << 40, "vg_extent_size": 4 << 20}
_DECIDED = re.compile(r"placement decided in ([\d.]+) ms")


def pretend(cluster: Cluster) -> None:
    """Have the nodes say that they are large servers with a volume group."""
    rules = json.dumps({"node_info": {"*": {"lie": MEMORY}}})
    row = {"vg_name": GROUP, "vg_missing_pv_count": 0, **DISK}
    answer = json.dumps({"report": [{"vg": [{key: str(value) for key, value in row.items()}]}]})
    for name in cluster.names:
        root = cluster.directory / name.partition(".")[0]
        (paths.Paths(root).conf / "fake-hypervisor.json").write_text(rules)
        program, settings = root / "usr/local/sbin/vgs", root / "etc/lvm/lvm.conf"
        for file in (program, settings):
            file.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text("# The program reads nothing here.\n")
        program.write_text(f"#!/bin/sh\necho '{answer}'\n")
        program.chmod(0o755)


def reserve(name: str) -> dict[str, Any]:
    return {
        "OP_ID": "OP_INSTANCE_CREATE",
        "instance_name": name,
        "mode": "create",
        "disk_template": "drbd",
        "disks": [{"size": 1024}],
        "nics": [{}],
        "os_type": "noop",
        "hypervisor": "fake",
        "iallocator": "hail",
        "forthcoming": True,
        "ip_check": False,
        "name_check": False,
    }


def figures(cluster: Cluster, instances: int, runs: int = 50) -> Figures:
    """Placements among so many instances, which the cluster has afterwards."""
    pretend(cluster)
    cluster.stop_master()
    fill_mirrored(cluster.root, instances, GROUP)
    cluster.start_master()
    whole = []
    for number in range(runs):
        begin = time.perf_counter()
        cluster.run([reserve(f"new{number}.example.com")])
        whole.append(time.perf_counter() - begin)
    log = (paths.Paths(cluster.root).log / "master-daemon.log").read_text()
    times = [float(found) / 1000 for found in _DECIDED.findall(log)]
    first, *later = times
    return {
        "nodes": len(cluster.names),
        "instances": instances,
        "decision": spread(later),
        "first_decision_ms": round(first * 1000, 1),
        "whole_job": spread(whole[1:]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=40)
    parser.add_argument("--instances", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ganeti-bench-") as temporary:
        say(f"starting {options.nodes} nodes")
        cluster = Cluster(Path(temporary) / "placement", options.nodes)
        try:
            found = figures(cluster, options.instances)
        finally:
            cluster.destroy()
    json.dump({"load": os.getloadavg(), **found}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
