"""Places that are reserved before their instances exist: real daemons, commands, remote API."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_cluster import REPOSITORY, Cluster
from rapi_server import PASSWORD, Api, basic
from waiting import wait_for

SHAPE = "-t file --disk 0:size=4M -B memory=512M --no-nics"


def free(cluster: Cluster, amount: int, *nodes: str) -> None:
    """What nodes say of their free memory, in MiB."""
    rules = {"node_info": {"*": {"lie": {"memory_free": amount, "memory_total": 10000}}}}
    for node in nodes or ("node1", "node2", "node3"):
        (cluster.paths(node).conf / "fake-hypervisor.json").write_text(json.dumps(rules))


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Api:
    return Api(cluster)


@pytest.fixture(autouse=True, scope="module")
def by_name_only(cluster: Cluster) -> None:
    """No allocator unless one is named: a reservation may then have no node."""
    cluster.ok("cluster modify --default-iallocator", "")


@pytest.fixture(autouse=True)
def empty(cluster: Cluster) -> Iterator[None]:
    yield
    for node in ("node1", "node2", "node3"):
        (cluster.paths(node).conf / "fake-hypervisor.json").unlink(missing_ok=True)
    for (name,) in cluster.cells("instance list -o name"):
        cluster.ok("instance remove -f", name)


def watch(cluster: Cluster) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(REPOSITORY / "daemons/ganeti-watcher")],
        env=cluster.env(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_twenty_that_fit_exactly_and_all_become_instances(cluster: Cluster, api: Api) -> None:
    # two nodes for 8, one for 4, of 512 MiB each
    free(cluster, 8 * 512, "node1", "node2")
    free(cluster, 4 * 512 + 511, "node3")
    too_many = cluster.gnt(f"instance reserve --count 21 -I most-free {SHAPE}")
    assert too_many.code == 1
    assert "there is room for 20 of 21 instances, so none is reserved" in too_many.err
    for node, left in (("node1", 0), ("node2", 0), ("node3", 511)):
        assert f"{node}.example.com: memory: needs 512 MiB, free {left}" in too_many.err
    assert cluster.cells("instance list -o name") == []

    made = cluster.ok(
        f"instance reserve --count 20 -I most-free -o noop --owner alice --expires 7d {SHAPE}"
    )
    uuids = made.lines
    assert len(set(uuids)) == 20
    held_memory = cluster.cells("node list --units=m -o name,reserved.memory,reserved.count")
    assert [row[1:] for row in held_memory] == [["4096", "8"], ["4096", "8"], ["2048", "4"]]
    assert "memory: 10.0G" in cluster.ok("cluster info").out

    last = cluster.gnt(f"instance add -n node1.example.com -o noop {SHAPE}", "late.example.com")
    assert last.code == 1
    assert "4096 MiB less 4096 MiB that are reserved for" in last.err
    another = cluster.gnt(f"instance reserve -I most-free {SHAPE}")
    assert "node3.example.com: memory: needs 512 MiB, free 511" in another.err

    random.Random(1).shuffle(uuids)
    cluster.ok("instance rename", uuids[0], "web0.example.com")
    cluster.ok("instance add --commit web0.example.com")
    jobs = []
    for number, uuid in enumerate(uuids[1:], 1):
        name = f"web{number}.example.com"
        api.run_job(f"PUT /2/instances/{uuid}/rename", {"new_name": name})
        jobs.append(api.ask(f"POST /2/instances/{name}/create", {}).value)
    for job in jobs:
        assert api.wait(job)["status"] == "success"
    rows = cluster.cells("instance list -o status,forthcoming")
    assert rows == [["running", "N"]] * 20


def test_verification_names_a_promise_that_cannot_be_kept(cluster: Cluster) -> None:
    free(cluster, 600)
    cluster.ok(f"instance add --forthcoming -n node2.example.com {SHAPE}", "web1.example.com")
    assert "reserved" not in cluster.gnt("cluster verify").out
    free(cluster, 500, "node2")
    said = cluster.gnt("cluster verify")
    assert said.code == 1
    text = "512 MiB of memory are reserved for web1.example.com, but only 500 MiB are free"
    assert text in said.out


def test_two_commits_at_once_make_one_instance(cluster: Cluster) -> None:
    cluster.ok(f"instance add --forthcoming -n node1.example.com -o noop {SHAPE} web1.example.com")
    jobs = [
        cluster.ok("instance add --commit --submit --print-jobid", "web1.example.com").lines[0]
        for _ in range(2)
    ]
    ends = [cluster.gnt("job watch", job) for job in jobs]
    assert sorted(end.code for end in ends) == [0, 1]
    said = "".join(end.out + end.err for end in ends)
    # the second one waits for the first, or comes when it has ended
    texts = ("became an instance while this job waited", "exists already; there is nothing to")
    assert any(text in said for text in texts)
    assert cluster.cells("instance list -o name,status") == [["web1.example.com", "running"]]


def test_the_watcher_gives_up_what_has_expired_and_nothing_else(cluster: Cluster) -> None:
    place = "-n node1.example.com -o noop"
    for name, ends in (("old", "1s"), ("soon", "1h"), ("late", "1s")):
        words = f"{place} {SHAPE} --expires {ends} {name}.example.com"
        cluster.ok(f"instance add --forthcoming {words}")
    cluster.ok("instance add --forthcoming", "kept.example.com")
    cluster.ok("instance add --commit", "late.example.com")
    assert ["late.example.com", "-"] in cluster.cells("instance list -o name,expires")
    wait_for(
        lambda: (
            watch(cluster).returncode == 0
            and "old.example.com" not in cluster.ok("instance list -o name").out
        ),
        "an expired reservation is given up",
    )
    assert cluster.cells("instance list -o name,forthcoming") == [
        ["kept.example.com", "Y"],
        ["late.example.com", "N"],
        ["soon.example.com", "Y"],
    ]
    log = (cluster.paths().log / "watcher.log").read_text()
    assert "Reservation old.example.com has expired: job" in log
    assert "late" not in log
    cluster.ok("cluster watcher pause 1h")
    assert watch(cluster).returncode == 0
    assert "Paused until" in (cluster.paths().log / "watcher.log").read_text()
    cluster.ok("cluster watcher continue")
    more = "--expires 9d --owner bob --note shop"
    cluster.ok(f"instance modify-reservation {more}", "kept.example.com")
    state = cluster.ok("instance info", "kept.example.com").out
    assert "State: reserved for bob until 20" in state
    assert "(shop)" in state


def test_a_reservation_is_changed_and_moved_without_a_node(cluster: Cluster) -> None:
    uuid = cluster.ok("instance add --forthcoming").lines[0]
    cluster.ok("instance modify --disk add:size=8M -B memory=64M -o noop", uuid)
    cluster.ok("instance rename", uuid, "web1.example.com")
    refused = cluster.gnt("instance startup", "web1.example.com")
    assert (
        "still missing: a node (gnt-instance failover --target-node NODE"
        in refused.out + refused.err
    )
    unready = cluster.gnt("instance add --commit", "web1.example.com")
    assert unready.code == 1
    assert "cannot become an instance yet; missing: a node" in unready.err
    cluster.ok("instance failover -f --target-node node2.example.com", "web1.example.com")
    cluster.ok("instance failover -f --target-node node3.example.com", "web1.example.com")
    where = cluster.cells("instance list -o name,pnode,disk.sizes")
    assert where == [["web1.example.com", "node3.example.com", "8"]]
    no_address = cluster.gnt("instance add --commit --name-check", "web1.example.com")
    if no_address.code:
        assert "has no address" in no_address.err
        cluster.ok("instance add --commit", "web1.example.com")
    assert cluster.cells("instance list -o status,pnode") == [["running", "node3.example.com"]]


def test_the_remote_api_reserves_names_and_creates(cluster: Cluster, api: Api) -> None:
    job = api.run_job("POST /2/instances", {"__version__": 1, "forthcoming": True})
    [uuid] = job["opresult"]
    assert api.get(f"/2/instances/{uuid}")["pnode"] is None
    change = {"os_name": "noop", "pnode": "node2.example.com", "disk_template": "diskless"}
    api.run_job(f"PUT /2/instances/{uuid}/modify", change)
    api.run_job(f"PUT /2/instances/{uuid}/rename", {"new_name": "web1.example.com"})
    api.run_job("POST /2/instances/web1.example.com/create", {})
    assert api.get("/2/instances/web1.example.com")["status"] == "running"
    body = {
        "instances": [{"disk_template": "diskless", "pnode": "node1.example.com"}] * 3,
        "owner": "alice",
        "expires": 4e9,
    }
    [made] = api.run_job("POST /2/reservations", body)["opresult"]
    assert len(made) == 3
    names = [item["id"] for item in api.get("/2/instances")]
    assert sorted(names) == sorted([*made, "web1.example.com"])
    longer = {"owner": "bob", "never_expires": True}
    api.run_job(f"PUT /2/reservations/{made[0]}/modify", longer)
    found = cluster.cells("instance list -o owner,expires", made[0])
    assert found == [["bob", "-"]]
    api.run_job(f"DELETE /2/instances/{made[0]}")
    assert len(cluster.cells("instance list -o name")) == 3


# balancing tools -------------------------------------------------------------------------------

#: Where Debian has those of Ganeti 3.0.
HBAL = Path("/usr/lib/ganeti/3.0/usr/bin/hbal")


@pytest.fixture
def two(cluster: Cluster) -> str:
    """An instance, and a reservation without a node; its uuid."""
    assert cluster.add("web1.example.com").code == 0
    return cluster.ok("instance add --forthcoming --no-nics").lines[-1]


@pytest.mark.parametrize(
    ("header", "seen"), [("Accept: */*", 1), ("Accept: */*\r\nUser-Agent: curl/8.0", 2)]
)
def test_only_htools_do_not_see_a_reservation_without_a_node(
    api: Api, two: str, header: str, seen: int
) -> None:
    answer = api.send_raw(
        f"GET /2/instances?bulk=1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{header}\r\n"
        f"Authorization: {basic('alice')}\r\n\r\n".encode()
    )
    rows = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert {row["name"] for row in rows} == {"web1.example.com", *[two][: seen - 1]}
    assert {item["id"] for item in api.get("/2/instances")} == {"web1.example.com", two}


@pytest.mark.skipif(not HBAL.exists(), reason="ganeti-htools-3.0 is not installed")
def test_hbal_loads_a_cluster_with_a_reservation_without_a_node(
    cluster: Cluster, api: Api, two: str
) -> None:
    address = api.url.replace("//", f"//alice:{PASSWORD}@")
    for source in (f"-L{cluster.paths().luxi_socket}", f"-m{address}"):
        ran = subprocess.run(
            [str(HBAL), source], capture_output=True, text=True, timeout=60, check=False
        )
        assert ran.returncode == 0, ran.stderr
        assert "Loaded 3 nodes, 1 instances" in ran.stdout
