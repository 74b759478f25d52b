"""What the info commands say of a real cluster can be read by programs: as YAML and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from local_cluster import Cluster

WEB = "web1.example.com"


@pytest.fixture(scope="module")
def filled_cluster(cluster: Cluster) -> Cluster:
    """A cluster with an instance in a network, a failed job and awkward texts."""
    cluster.ok("network add --network 192.0.2.0/28", "net1")
    cluster.ok("network connect", "net1")
    added = cluster.gnt(
        "instance add -n node2 -o noop -t file --disk 0:size=8M --net 0:network=net1,ip=pool", WEB
    )
    assert added.code == 0, added.err
    cluster.ok("instance modify -B maxmem=256 --reason", "more: it's #1 [urgent]", WEB)
    cluster.gnt("instance migrate -f", WEB)  # file disks cannot migrate
    return cluster


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("cluster info", None),
        ("instance info", WEB),
        ("node info", "node2"),
        ("group info", "default"),
        ("os info", None),
        ("disk info", None),
    ],
)
def test_the_text_is_yaml(filled_cluster: Cluster, command: str, name: str | None) -> None:
    assert yaml.safe_load(filled_cluster.ok(command, *([name] if name else [])).out)


def _jobs(filled_cluster: Cluster) -> list[str]:
    return [row[0] for row in filled_cluster.cells("job list")]


def test_the_text_of_every_job_is_yaml(filled_cluster: Cluster) -> None:
    ids = _jobs(filled_cluster)
    read = yaml.safe_load(filled_cluster.ok("job info", *ids).out)
    assert [str(job["Job ID"]) for job in read] == ids
    assert "error" in {job["Status"] for job in read}


def _check_both_forms(filled_cluster: Cluster, command: str, *words: str) -> Any:
    as_json = json.loads(filled_cluster.ok(f"{command} --format json", *words).out)
    assert yaml.safe_load(filled_cluster.ok(f"{command} --format yaml", *words).out) == as_json
    return as_json


def test_json_and_yaml_are_the_same(filled_cluster: Cluster) -> None:
    assert (
        _check_both_forms(filled_cluster, "cluster info")["Cluster name"] == "cluster.example.com"
    )
    (web,) = _check_both_forms(filled_cluster, "instance info", WEB)
    assert web["Back-end parameters"]["maxmem"] == "256"
    assert web["Back-end parameters"]["vcpus"] == "default (1)"
    assert web["Disks"][0]["logical_id"][0] == "loop"
    (net,) = _check_both_forms(filled_cluster, "network info", "net1")
    assert net["Instances"] == {WEB: {"0": "192.0.2.1"}}
    (failed,) = filled_cluster.cells("job list --error")
    (job,) = _check_both_forms(filled_cluster, "job info", failed[0])
    assert job["Opcodes"][0]["OP_INSTANCE_MIGRATE"]["Input fields"]["instance_name"] == WEB
    for command in ("node info", "group info", "disk info", "os info"):
        assert _check_both_forms(filled_cluster, command)


def test_what_scripts_look_for(filled_cluster: Cluster) -> None:
    assert filled_cluster.ok("cluster watcher info").out == "The watcher is not paused.\n"
    assert filled_cluster.ok("cluster watcher pause 1h").out.startswith(
        "The watcher is paused until "
    )
    assert filled_cluster.ok("cluster watcher info").out.startswith("The watcher is paused until ")
    assert filled_cluster.ok("cluster watcher continue").out == "The watcher is no longer paused.\n"
    assert "    - max/0: \n        cpu-count: " in filled_cluster.ok("cluster info").out
    assert "    - secondaries: \n" in filled_cluster.ok("instance info", WEB).out
    lines = filled_cluster.ok("os diagnose").lines
    assert "OS: noop [global status: valid]" in lines
    path = filled_cluster.root() / "srv/ganeti/os/noop"
    assert (
        f"  Node: node1.example.com, status: VALID (path: {path}) [API versions: 10, 15, 20]"
        " [no variants] [no parameters] [trusted]"
    ) in lines
