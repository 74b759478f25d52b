"""gnt-instance move: disks are copied to another node, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_cluster import Cluster
from test_cluster_moves import read_primary, runs_on, script
from waiting import wait_for

WEB = "web1.example.com"
ADD = "instance add -n node2 -o noop -t file --disk 0:size=8M --disk 1:size=4M --no-nics"


@pytest.fixture
def web(cluster: Cluster) -> Iterator[list[Path]]:
    """A running instance on node2; gives its disks, which hold something."""
    cluster.ok(ADD, WEB)
    disks = [cluster.directory / path for path in cluster.disks()]
    for disk in disks:
        with disk.open("r+b") as stream:
            stream.seek(1 << 20)
            stream.write(os.urandom(1 << 20))
    yield disks
    for node in ("node2", "node3"):
        script(cluster, node)
    cluster.ok("instance remove -f", WEB)
    assert cluster.disks() == []


def contents(cluster: Cluster) -> dict[str, bytes]:
    return {
        path.partition("/")[2]: (cluster.directory / path).read_bytes() for path in cluster.disks()
    }


@pytest.mark.parametrize("compress", ["none", "gzip-fast"])
def test_disks_arrive_as_they_were(cluster: Cluster, web: list[Path], compress: str) -> None:
    before = contents(cluster)
    assert len(before) == 2
    out = cluster.ok(f"instance move -f -n node3 --compress {compress}", WEB).out
    assert " - disk/0: 8 MiB in " in out
    assert "7 MiB of zeros skipped" in out
    assert "copying disk/0 (8 MiB)" in out
    assert contents(cluster) == before
    assert all(path.startswith("node3/") for path in cluster.disks())
    assert (runs_on(cluster), read_primary(cluster)) == (["node3"], "node3")
    sizes = [os.stat(cluster.directory / path).st_blocks * 512 for path in cluster.disks()]
    assert max(sizes) < 3 << 20, "holes were filled"
    assert cluster.ok("cluster verify").code == 0


def test_a_target_without_room(cluster: Cluster, web: list[Path]) -> None:
    script(cluster, "node3", node_info={"*": {"lie": {"memory_free": 1}}})
    ran = cluster.gnt("instance move -f -n node3", WEB)
    assert "not enough memory on node node3.example.com" in ran.err
    assert runs_on(cluster) == ["node2"]


def test_a_copy_that_fails_changes_nothing(cluster: Cluster, web: list[Path]) -> None:
    before = contents(cluster)
    ran = cluster.gnt("instance move -f -n node3 --compress lzop", WEB)
    assert ran.code == 1
    assert "choose from none, gzip, gzip-fast, gzip-slow" in ran.err
    assert contents(cluster) == before
    assert all(path.startswith("node2/") for path in cluster.disks())
    assert (runs_on(cluster), read_primary(cluster)) == (["node2"], "node2")


def test_what_need_not_be_copied(cluster: Cluster) -> None:
    cluster.ok("instance add -n node2 -o noop -t sharedfile --disk 0:size=8M --no-nics", WEB)
    ran = cluster.gnt("instance move -f -n node3", WEB)
    assert ran.code == 1
    assert "need not be copied; use gnt-instance migrate or failover" in ran.err
    cluster.ok("instance remove -f", WEB)


@pytest.mark.parametrize(
    "line", ["instance move -f --live -n node3", "instance migrate -f -n node3"]
)
def test_a_running_instance_takes_its_disks_along(
    cluster: Cluster, web: list[Path], line: str
) -> None:
    before = contents(cluster)
    out = cluster.ok(line, WEB).out
    assert "shutting down" not in out
    assert " - disk/0, disk/1: 12 MiB in " in out
    assert contents(cluster) == before
    assert all(path.startswith("node3/") for path in cluster.disks())
    assert (runs_on(cluster), read_primary(cluster)) == (["node3"], "node3")
    assert cluster.ok("cluster verify").code == 0


def test_a_stopped_instance_is_moved_as_ever(cluster: Cluster, web: list[Path]) -> None:
    cluster.ok("instance shutdown --timeout=0", WEB)
    before = contents(cluster)
    assert "copying disk/0 (8 MiB)" in cluster.ok("instance move -f --live -n node3", WEB).out
    assert contents(cluster) == before
    ran = cluster.gnt("instance migrate -f -n node2", WEB)
    assert ran.code == 1
    assert "it does not run; gnt-instance move -n node2.example.com web1" in ran.err
    assert all(path.startswith("node3/") for path in cluster.disks())


def lie_of_progress(cluster: Cluster, **facts: object) -> None:
    """The source says that its disks get no nearer to the end."""
    [uuids] = cluster.cells("instance list -o disk.uuid/0,disk.uuid/1", WEB)
    lie = [{"uuid": uuid, "done": 1 << 20, "left": 7 << 20, **facts} for uuid in uuids]
    script(cluster, "node2", disk_progress={"*": {"lie": lie, "delay": 0.3}})


@pytest.mark.parametrize(
    ("facts", "options", "said"),
    [
        (
            {},
            "--give-up-after=1",
            "the guest writes as fast as its disks are sent: 14 MiB are left",
        ),
        ({"error": "No space left on device"}, "", "disk/0 was not sent: No space left on device"),
    ],
)
def test_a_move_that_does_not_end_changes_nothing(
    cluster: Cluster, web: list[Path], facts: dict[str, object], options: str, said: str
) -> None:
    before = contents(cluster)
    lie_of_progress(cluster, **facts)
    ran = cluster.gnt(f"instance move -f --live {options} -n node3", WEB)
    assert ran.code == 1
    assert said in ran.err
    assert contents(cluster) == before
    assert all(path.startswith("node2/") for path in cluster.disks())
    assert (runs_on(cluster), read_primary(cluster)) == (["node2"], "node2")
    assert cluster.ok("cluster verify").code == 0


def test_a_canceled_move_changes_nothing(cluster: Cluster, web: list[Path]) -> None:
    lie_of_progress(cluster)
    job = cluster.ok("instance move -f --live -n node3 --submit --print-jobid", WEB).out.split()[-1]
    wait_for(
        lambda: "sending the disks" in cluster.gnt("job info", job).out, "the job to begin", 60
    )
    cluster.ok("job cancel --force", job)
    assert "canceled" in cluster.gnt("job watch", job).out
    assert all(path.startswith("node2/") for path in cluster.disks())
    assert (runs_on(cluster), read_primary(cluster)) == (["node2"], "node2")


def test_data_that_is_in_the_way_is_not_overwritten(cluster: Cluster, web: list[Path]) -> None:
    there = cluster.root("node3") / web[0].relative_to(cluster.root("node2"))
    there.parent.mkdir(parents=True)
    there.write_bytes(b"somebody needs it")
    ran = cluster.gnt("instance move -f --live -n node3", WEB)
    assert ran.code == 1
    assert "node3.example.com already has data under the name of disk/" in ran.err
    assert there.read_bytes() == b"somebody needs it"
    there.unlink()
    there.parent.rmdir()


def test_only_disks_of_the_node_are_sent(cluster: Cluster, web: list[Path]) -> None:
    cluster.ok("disk add -t sharedfile -s 4M --name data")
    cluster.ok("instance modify --disk attach,name=data", WEB)
    before = contents(cluster)
    out = cluster.ok("instance migrate -f -n node3", WEB).out
    assert " - disk/0, disk/1: 12 MiB in " in out
    assert contents(cluster) == before
    assert all(path.startswith("node3/") for path in cluster.disks())
    assert (runs_on(cluster), read_primary(cluster)) == (["node3"], "node3")
    assert cluster.ok("cluster verify").code == 0
    assert "disk/2" not in cluster.ok("instance move -f --live -n node2", WEB).out
    assert contents(cluster) == before
