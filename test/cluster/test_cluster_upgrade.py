"""Configurations of other versions under the real master daemon."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import old_configs
from local_cluster import REPOSITORY, Cluster, Ran, tool

from ganeti import constants

RECORDED = REPOSITORY / "test" / "recorded" / "config_3_0_2.json"
LISTED = "instance list -o name,uuid,pnode,disk.sizes,disk.uuids,tags,be/maxmem"


def upgrade(cluster: Cluster, *words: str) -> Ran:
    """Run cfgupgrade on the master node."""
    result = subprocess.run(
        [sys.executable, "-m", "ganeti.offline.cfgupgrade", *words],
        env=cluster.env(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Ran(result.returncode, result.stdout, result.stderr)


def version(cluster: Cluster) -> int:
    return int(json.loads(cluster.paths().config_file.read_bytes())["version"])


def test_a_cluster_goes_back_and_comes_again(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "c", 2)
    try:
        assert cluster.add("web1.example.com", "--tags=prod,db:1").code == 0
        assert cluster.add("web2.example.com", "-B", "maxmem=128").code == 0
        before = cluster.cells(LISTED)
        running = upgrade(cluster, "--downgrade", "--force")
        assert running.code == 1
        assert "ganeti-masterd runs (pid" in running.err

        assert tool("stop", cluster.directory).code == 0
        for target, number in (("3.0", 3_000_000), ("2.13", 2_130_000)):
            back = upgrade(cluster, "--downgrade", "--to", target, "--force")
            assert back.code == 0, back.err
            assert version(cluster) == number
            refused = cluster.start_master()
            assert refused.code != 0
            assert "cfgupgrade" in refused.err
            again = upgrade(cluster, "--force")
            assert again.code == 0, again.err
        assert version(cluster) == constants.CONFIG_VERSION

        started = tool("start", cluster.directory)
        assert started.code == 0, started.err
        assert cluster.cells(LISTED) == before
        assert cluster.ok("cluster verify").code == 0
        assert cluster.add("web3.example.com").code == 0
    finally:
        cluster.destroy()


def test_data_directories_of_other_versions_start(tmp_path: Path) -> None:
    """One node whose cluster is exchanged for one of 3.0.2, then for one of 2.7."""
    cluster = Cluster(tmp_path / "c", 1)
    try:
        address = cluster.cells("node list -o pip")[0][0]
        recorded = json.loads(RECORDED.read_bytes())
        exchange(cluster, recorded, address, jobs=[old_job(5)])
        assert cluster.cells("job list -o id,status,summary") == [
            ["5", "success", "CLUSTER_WHATEVER"]
        ]
        assert [row[0] for row in cluster.cells("instance list -o name")] == [
            "inst1.example.com",
            "inst2.example.com",
        ]
        assert cluster.cells("instance list -o disk.sizes", "inst1") == [["20,8"]]
        assert cluster.ok("instance modify -B maxmem=300", "inst1").code == 0

        old = keep_one_node(old_configs.render(old_configs.facts(21), 2_070_000))
        exchange(cluster, old, address)
        assert sorted(row[0] for row in cluster.cells("instance list -o name")) == sorted(
            old["instances"]
        )
        first = sorted(old["instances"])[0]
        large = cluster.gnt("instance modify -B maxmem=9000", first)
        assert "memory-size 9000 is not between 96 and 8192" in large.err, "policy of the group"
        assert cluster.ok("instance modify -B maxmem=8000", first).code == 0
    finally:
        cluster.destroy()


def keep_one_node(raw: old_configs.Raw) -> old_configs.Raw:
    """The cluster without all nodes but the master, which is called node1, and their instances."""
    former = raw["cluster"]["master_node"]
    node = raw["nodes"][former] | {"name": "node1.example.com"}
    raw["cluster"] |= {
        "master_node": node["name"],
        "enabled_hypervisors": ["fake"],
        "master_netdev": "lo",
        "volume_group_name": None,
    }
    raw["nodes"] = {node["name"]: node}
    raw["instances"] = {
        name: instance | {"primary_node": node["name"], "hypervisor": "fake", "hvparams": {}}
        for name, instance in raw["instances"].items()
        if instance["disk_template"] != "drbd"
    }
    assert raw["instances"], "the test needs some"
    return raw


def old_job(number: int) -> old_configs.Raw:
    """An ended job of another version, with an opcode that we do not have."""
    stamp = [1_795_225_000, 5]
    op = {
        "input": {"OP_ID": "OP_CLUSTER_WHATEVER", "reason": [], "name": "x", "debug_level": 0},
        "status": "success",
        "result": True,
        "log": [],
        "priority": 0,
        "start_timestamp": stamp,
        "exec_timestamp": stamp,
        "end_timestamp": stamp,
    }
    return {
        "id": number,
        "ops": [op],
        "received_timestamp": stamp,
        "start_timestamp": stamp,
        "end_timestamp": stamp,
        "livelock": "/var/run/ganeti/livelocks/job_1",
        "process_id": 77,
    }


def exchange(
    cluster: Cluster, raw: old_configs.Raw, address: str, jobs: Sequence[old_configs.Raw] = ()
) -> None:
    """Stop everything, put another data directory in place, upgrade it, start."""
    assert tool("stop", cluster.directory).code == 0
    where = cluster.paths()
    for path in sorted(where.data.rglob("*"), reverse=True):
        if path.is_file() and "rapi" not in path.parts:
            path.unlink()
    (node,) = raw["nodes"].values()
    node |= {"primary_ip": address, "secondary_ip": address}
    raw["cluster"]["master_ip"] = address
    where.config_file.write_text(json.dumps(raw))
    for job in jobs:
        (where.queue / f"job-{job['id']}").write_text(json.dumps(job))
        (where.queue / "serial").write_text(f"{job['id']}\n")
    done = upgrade(cluster, "--force")
    assert done.code == 0, done.err
    started = tool("start", cluster.directory)
    assert started.code == 0, started.err
