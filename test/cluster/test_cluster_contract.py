"""Every recorded hook runs, and every recorded request of the remote API is answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import contract
import pytest
from local_cluster import Cluster, tool
from rapi_server import Api
from storage_nodes import StorageNodes

pytestmark = pytest.mark.long

HOOKS = contract.read_recorded("hooks")
WEB, DB, APP = "web.example.com", "db.example.com", "app.example.com"
ADD = "instance add -o noop --no-nics --disk 0:size=8M"
#: What runs all hooks, in this order.
LINES = (
    "cluster verify",
    "cluster modify --maintain-node-health no --candidate-pool-size 4",
    f"{ADD} -t sharedfile -n node2 {WEB}",
    f"{ADD} -t drbd -n node2:node3 --no-wait-for-sync {DB}",
    f"{ADD} -t file -n node2 {APP}",
    f"backup export -n node3 {APP}",
    f"backup import -n node2 --src-dir {APP} app3.example.com",
    "instance remove -f app3.example.com",
    f"backup remove {APP}",
    f"instance modify -B vcpus=2 {WEB}",
    f"instance modify -m 64M {WEB}",
    f"instance grow-disk {WEB} 0 4M",
    f"instance migrate -f -n node3 {WEB}",
    f"instance failover -f -n node2 {WEB}",
    f"instance reboot {WEB}",
    f"instance replace-disks -s {DB}",
    f"instance move -f -n node3 {APP}",
    f"instance shutdown {APP}",
    f"instance reinstall -f {APP}",
    f"instance rename {APP} app2.example.com",
    "instance startup app2.example.com",
    "instance shutdown app2.example.com",
    "instance recreate-disks app2.example.com",
    "instance modify -t sharedfile app2.example.com",
    "instance remove -f app2.example.com",
    "group add first",
    "group rename first far",
    "group modify --alloc-policy last_resort far",
    "group modify --alloc-policy preferred far",
    f"instance remove -f {DB}",
    "group assign-nodes far node1",
    f"instance change-group --to far {WEB}",
    "group evacuate --to default far",
    "group assign-nodes default node1",
    "group remove far",
    "node migrate -f node2",
    "node migrate -f node3",
    "network add --network 192.0.2.0/28 net",
    "network connect -N mode=bridged,link=br0 net default",
    "network modify --gateway 192.0.2.1 net",
    "network rename net net2",
    "network disconnect net2 default",
    "network remove net2",
    "node modify --drained yes node3",
    "node modify --drained no node3",
    "cluster activate-master-ip",
    "cluster deactivate-master-ip --yes",
)  # fmt: skip


def put_hook(cluster: Cluster, node: str, path: str, phase: str) -> None:
    """Put a hook that writes down its variables."""
    directory = cluster.paths(node).hooks / f"{path}-{phase}.d"
    directory.mkdir(parents=True, exist_ok=True)
    where = cluster.directory / "told"
    where.mkdir(exist_ok=True)
    script = directory / "tell"
    # The shell itself drops variables with names such as GANETI_NODE_TAGS_node1.example.com.
    out = f"{where}/{path}-{phase}-{node}-$$"
    script.write_text(f"#!/bin/sh\ntr '\\0' '\\n' < /proc/$$/environ > {out}\n")
    script.chmod(0o755)


def list_runs(cluster: Cluster) -> Iterator[tuple[str, dict[str, str]]]:
    """``path phase`` and variables of every hook that ran."""
    for file in sorted((cluster.directory / "told").iterdir()):
        lines = (line.partition("=") for line in file.read_text().splitlines())
        env = {key: value for key, _, value in lines}
        yield f"{env['GANETI_HOOKS_PATH']} {env['GANETI_HOOKS_PHASE']}", env


def expect_hooks() -> dict[str, list[str]]:
    """``path phase`` -> the variables that a script finds, besides those of its object."""
    operations = {
        f"{facts['path']} {phase}": facts["env"]
        for facts in HOOKS["operations"].values()
        for phase in facts["phases"]
    }
    others = {f"{path} {phase}": [] for path, phases in HOOKS["others"].items() for phase in phases}
    return operations | others


def submit(cluster: Cluster, *ops: dict[str, Any]) -> None:
    file = cluster.directory / "job.json"
    file.write_text(json.dumps(list(ops)))
    cluster.ok("debug submit-job", str(file))


def test_every_hook_runs(storage_cluster: tuple[Cluster, StorageNodes]) -> None:
    cluster, _nodes = storage_cluster
    wanted = expect_hooks()
    for node in ("node1", "node2", "node3"):
        for name in wanted:
            put_hook(cluster, node, *name.split())
    cluster.ok("cluster modify --default-iallocator hail")
    submit(cluster, {"OP_ID": "OP_CLUSTER_POST_INIT"})
    for line in LINES:
        if line.startswith("instance recreate-disks"):
            for file in cluster.directory.glob("node*/srv/ganeti/file-storage/app2*/*"):
                file.unlink()
        cluster.ok(line)
    cluster.ok("node remove", "node3")
    tool("start-node", cluster.directory, "node3")
    cluster.ok("node add --no-ssh-key-check", "node3.example.com")
    rename(cluster)
    cluster.ok("instance remove -f", WEB)
    for node in ("node3", "node2"):
        cluster.ok("node remove", node)
    cluster.ok("cluster destroy --yes-do-it")
    found: dict[str, set[str]] = {}
    for name, env in list_runs(cluster):
        found.setdefault(name, set()).update(env)
    variables = [(name, key) for name, keys in wanted.items() for key in keys]
    contract.check_table("hooks", wanted, found)
    contract.check_table(
        "variables of hooks",
        [f"{name} {key}" for name, key in variables],
        [f"{name} {key}" for name, key in variables if is_there(key, found.get(name, set()))],
    )


def is_there(key: str, env: set[str]) -> bool:
    """Whether a hook had a variable, or all of them if its name has a name in it."""
    beginning = f"GANETI_{key.partition('<')[0]}"
    return any(name == beginning or ("<" in key and name.startswith(beginning)) for name in env)


def rename(cluster: Cluster) -> None:
    """Give the cluster another name and address."""
    hosts = cluster.root() / "etc/hosts"
    address = cluster.paths().ssconf("master_ip").read_text().strip()
    with hosts.open("a") as file:
        file.write(f"{address.rpartition('.')[0]}.253 other.example.com\n")
    cluster.ok("cluster rename -f", "other.example.com")


PLACES = {
    "<instance>": WEB,
    "<node>": "node2.example.com",
    "<group>": "default",
    "<network>": "net",
    "<job_id>": "1",
    "<disk_index>": "0",
    "<resource>": "node",
    "<uuid>": "c0a8e5b6-4a8f-4f5c-9b0a-1c1c1c1c1c1c",
    "<filter_uuid>": "c0a8e5b6-4a8f-4f5c-9b0a-1c1c1c1c1c1c",
}


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Api:
    assert cluster.add(WEB).code == 0
    return Api(cluster)


def test_every_request_is_known_and_answered(api: Api) -> None:
    """Right or wrong: none is answered by 501, and none by an error of the server."""
    wanted, have = [], []
    for path, resource in contract.read_recorded("rapi")["resources"].items():
        where = path
        for place, text in PLACES.items():
            where = where.replace(place, text)
        assert "<" not in where
        for method in resource["methods"]:
            wanted.append(name := f"{method} {path}")
            body = None if method in ("GET", "DELETE") else {}
            answer = api.ask(f"{method} {where}?dry-run=1", body)
            if answer.status != 501:
                have.append(name)
            assert answer.status < 500 or answer.status == 501, (name, answer.body)
    contract.check_table("requests that are answered", wanted, have)
