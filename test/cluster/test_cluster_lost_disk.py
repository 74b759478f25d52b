"""A disk of a node breaks: verification tells it, and it is dropped from its volume group.

The volume groups are real, without activation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import loop_lvm
import pytest
from local_cluster import Cluster, copy_cluster

Both = tuple[Cluster, dict[str, loop_lvm.LoopDisks]]


@pytest.fixture(scope="module")
def lvm_cluster() -> Iterator[Both]:
    """Two nodes with a volume group ``xenvg`` on three disks each."""
    loop_lvm.skip_if_unavailable()
    with ExitStack() as stack:
        made = stack.enter_context(copy_cluster(2))
        disks: dict[str, loop_lvm.LoopDisks] = {}
        for node in ("node1", "node2"):
            home = made.root(node) / "etc/lvm"
            disks[node] = stack.enter_context(loop_lvm.loop_disks(home, 128, 128, 128))
            disks[node].group("xenvg")
        made.ok(
            "cluster modify --vg-name=xenvg --enabled-disk-templates=plain,diskless,file"
            " --ipolicy-disk-templates=plain,diskless,file"
        )
        yield made, disks


def test_the_disks_of_an_instance_lie_together_and_instances_apart(lvm_cluster: Both) -> None:
    cluster, disks = lvm_cluster
    # 48 MiB and 64 MiB fit each on the first disk beside 40 MiB, together only elsewhere.
    disks["node2"].lvm(
        "lvcreate", "-n", "old", "-L", "20m", "--yes", "xenvg", disks["node2"].devices[0]
    )
    cluster.ok("cluster modify --reserved-lvs=xenvg/old")
    for name in ("web1", "web2"):
        cluster.ok(
            "instance add -n node2 -t plain --no-install --no-start --no-nics -o noop"
            " --disk 0:size=48M --disk 1:size=64M",
            f"{name}.example.com",
        )
    rows = cluster.cells("node volumes -o instance,phys", "node2")
    places = {
        name: {disk for owner, disk in rows if owner.startswith(name)} for name in ("web1", "web2")
    }
    assert [len(found) for found in places.values()] == [1, 1]
    assert places["web1"] != places["web2"]
    assert disks["node2"].devices[0] not in places["web1"] | places["web2"]


def test_a_lost_disk_is_told_and_dropped(lvm_cluster: Both) -> None:
    cluster, disks = lvm_cluster
    assert "all volume groups are consistent" in cluster.ok("node auto-repair-storage").out
    disks["node2"].lose(0)
    verified = cluster.gnt("cluster verify --error-codes").out
    assert "ENODELVM:node:node2.example.com:volume group xenvg lost 1 physical volume" in verified
    done = cluster.ok("node auto-repair-storage").out
    assert "node=node2.example.com vg=xenvg result=consistent" in done
    assert "xenvg lost" not in cluster.gnt("cluster verify").out
    log = cluster.paths("node2").log / "node-daemon.log"
    assert "with them go the volumes: old" in log.read_text()
    # A second loss is left to people: the first must have been seen as repaired before.
    disks["node2"].lose(1)
    refused = cluster.ok("node auto-repair-storage").out
    assert "was not known to be consistent" in refused
    cluster.ok("node repair-storage node2 lvm-vg xenvg")
    assert "all volume groups are consistent" in cluster.ok("node auto-repair-storage").out
