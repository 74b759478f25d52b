"""Instances on mirrored disks, through the commands and daemons: their life, and what breaks."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from lab import mirror, sabotage
from lab.channel import wait_for
from lab.cluster import Cluster, Node
from lab.faults import Book

WEB = "web1"
#: A device of somebody else, in use.
_FOREIGN = """
    lvcreate -q -y -L 32m -n foreign_data xenvg; lvcreate -q -y -L 128m -n foreign_meta xenvg
    yes yes | drbdmeta --force 0 v08 /dev/xenvg/foreign_meta 0 create-md
    drbdsetup new-resource foreign; drbdsetup new-minor foreign 0 0
    drbdsetup attach 0 /dev/xenvg/foreign_data /dev/xenvg/foreign_meta 0
    drbdsetup primary 0 --force
"""


class Pair:
    """A running instance with one mirrored disk on the second and third node."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.left, self.right = cluster.nodes[1:3]

    def sides(self) -> tuple[Node, Node]:
        """Primary and secondary node."""
        return self.running()[:2]

    def running(self) -> tuple[Node, Node, str]:
        """The same, and the status."""
        ((first, second, status),) = self.cluster.cells("instance list -o pnode,snodes,status", WEB)
        by_name = {node.name: node for node in self.cluster.nodes}
        return by_name[first], by_name[second], status

    def await_complete(self, limit: float = 120.0) -> None:
        """Wait until the mirror is complete; both sides hold the same then."""
        mirror.await_state(self.left, limit, **mirror.WHOLE)
        assert mirror.checksum(self.left) == mirror.checksum(self.right)

    def bring_back(self, node: Node) -> None:
        """After a power cut: boot, back into the cluster, mirror again."""
        if not node.machine.is_on:
            node.power_on()
        self.cluster.ok("node modify --offline=no", node.name)
        self.cluster.ok("instance activate-disks", WEB)
        self.await_complete()


def unknown_volumes(said: str) -> list[str]:
    """Volumes that ``gnt-cluster verify`` knows no disk for."""
    return re.findall(r"volume (\S+) is unknown", said)


@pytest.fixture
def pair(cluster: Cluster) -> Iterator[Pair]:
    made = Pair(cluster)
    if not cluster.cells("instance list -o name"):
        cluster.add(WEB, "drbd", made.left, "--disk", "0:size=32M", second=made.right)
        mirror.write(made.left, "payload")
    return made


def test_a_mirror_that_cannot_be_made_leaves_nothing(cluster: Cluster, book: Book) -> None:
    left, right = cluster.nodes[1:3]
    with book.case("gnt-instance add -t drbd", "the minor is taken by somebody else") as case:
        right.sh(_FOREIGN)
        ran = cluster.try_add(WEB, "drbd", left, "--disk", "0:size=32M", second=right)
        assert ran.code == 1
        assert "but is in use by" in ran.err, ran.err
        assert "unallocated drbd minor 0 is in use" in cluster.gnt("cluster verify").out
        case.outcome = "refused, nothing left behind; verify names the minor"
        case.recovery = "take that minor away (drbdsetup secondary, down)"
        right.sh("drbdsetup secondary 0; drbdsetup down foreign; lvremove -q -y xenvg")
    with book.case("gnt-instance add -t drbd", "network of the secondary node cut") as case:
        right.machine.link(up=False)
        ran = cluster.try_add(WEB, "drbd", left, "--disk", "0:size=32M", second=right)
        assert ran.code == 1
        assert right.name in ran.err
        right.machine.link(up=True)
        case.outcome = "refused, nothing left behind"
        case.recovery = "network back"
    assert cluster.cells("instance list -o name") == []
    assert left.volumes() == right.volumes() == {}


def test_the_node_daemon_dies_while_a_mirror_is_made(cluster: Cluster, book: Book) -> None:
    left, right = cluster.nodes[1:3]
    disk = ("--disk", "0:size=32M")
    fault = "node daemon of the secondary node killed while the disk is made"
    with book.case("gnt-instance add -t drbd", fault) as case:
        sabotage.stop_at(right, "drbdsetup", "attach")
        ran = cluster.try_add(WEB, "drbd", left, *disk, "--submit", second=right)
        sabotage.wait_until_stopped(right)
        sabotage.kill_daemon(right)
        watched = cluster.gnt("job watch", (ran.out + ran.err).split()[-1])
        sabotage.let_go(right, "drbdsetup")
        assert watched.code == 1
        assert right.name in watched.out + watched.err
        assert cluster.cells("instance list -o name") == []
        assert left.volumes() == {}
        assert f"node {right.name}: no answer" in cluster.gnt("cluster verify").out
        right.start("ganeti-noded")
        said = cluster.gnt("cluster verify").out
        (end,) = re.findall(r"drbd minor 0 is in use; if nothing needs it: (.+)", said)
        lost = unknown_volumes(said)
        assert len(lost) == 2
        assert end in cluster.try_add(WEB, "drbd", left, *disk, second=right).err
        right.sh(end)
        right.sh("".join(f"lvremove -q -y {name}\n" for name in lost))
        cluster.ok("cluster verify")
        cluster.add(WEB, "drbd", left, *disk, second=right)
        case.outcome = (
            "the job fails and names the node, no instance; nothing is left on the primary node."
            " On the other one a DRBD device and two volumes are: verify names them, and adding"
            " an instance that gets this minor is refused"
        )
        case.recovery = (
            "daemon started again, the commands that verify prints (drbdsetup secondary, down,"
            " lvremove), instance add"
        )
    cluster.ok("instance remove -f", WEB)
    assert left.volumes() == right.volumes() == {}


def test_a_mirror_is_made_grows_and_changes_sides(pair: Pair) -> None:
    cluster = pair.cluster
    pair.await_complete()
    cluster.ok("instance grow-disk", WEB, "0", "16M")
    size = pair.left.sh("blockdev --getsize64 /dev/drbd0")
    assert size == str(48 << 20)
    pair.await_complete()
    cluster.ok("instance failover -f", WEB)
    assert pair.running() == (pair.right, pair.left, "running")
    assert mirror.read(pair.right, 7) == "payload"


def test_the_primary_loses_its_power(pair: Pair, book: Book) -> None:
    cluster, (lost, kept) = pair.cluster, pair.sides()
    with book.case("running instance on DRBD", "power cut of the primary node") as case:
        lost.power_cut()
        mirror.await_state(kept, cs="WFConnection")
        assert cluster.gnt("node modify --offline=yes", lost.name).code == 0
        cluster.ok("instance failover -f --ignore-consistency", WEB)
        assert pair.running()[2] == "running"
        assert mirror.read(kept, 7) == "payload"
        mirror.write(kept, "written-alone", offset=64)
        case.outcome = "marked offline and failed over, it runs on the secondary node, no data lost"
        case.recovery = "node modify --offline=no, instance activate-disks: what changed is synced"
    pair.bring_back(lost)
    assert mirror.read(kept, 13, offset=64) == "written-alone"


def test_the_secondary_loses_its_power(pair: Pair, book: Book) -> None:
    kept, lost = pair.sides()
    with book.case("running instance on DRBD", "power cut of the secondary node") as case:
        lost.power_cut()
        mirror.await_state(kept, cs="WFConnection")
        mirror.write(kept, "still-writes", offset=128)
        assert pair.running()[2] == "running"
        case.outcome = "continues; the mirror is degraded"
        case.recovery = "power on, instance activate-disks: what changed is synced"
    pair.bring_back(lost)
    assert mirror.read(kept, 12, offset=128) == "still-writes"


def test_the_link_is_cut(pair: Pair, book: Book) -> None:
    kept, away = pair.sides()
    with book.case("running instance on DRBD", "network of the secondary node cut") as case:
        away.machine.link(up=False)
        mirror.await_state(kept, cs="WFConnection")
        mirror.write(kept, "unseen", offset=192)
        away.machine.link(up=True)
        pair.await_complete()
        assert mirror.read(kept, 6, offset=192) == "unseen"
        case.outcome = "continues; the mirror is degraded"
        case.recovery = "by itself when the network is back"


@pytest.mark.parametrize("good", ["primary", "secondary"])
def test_both_copies_were_written(pair: Pair, book: Book, good: str) -> None:
    """The page doc/admin/when-drbd-splits.md, command by command."""
    cluster, (away, here) = pair.cluster, pair.sides()
    fault = f"split brain; the {good} node has the good copy"
    with book.case("running instance on DRBD", fault) as case:
        away.machine.link(up=False)
        mirror.await_state(here, cs="WFConnection")
        mirror.write(away, "written-away", offset=256)
        away.power_cut()
        assert cluster.gnt("node modify --offline=yes", away.name).code == 0
        cluster.ok("instance failover -f --ignore-consistency", WEB)
        mirror.write(here, "written-here", offset=256)
        away.power_on()
        cluster.ok("node modify --offline=no", away.name)
        cluster.gnt("instance activate-disks", WEB)
        said = cluster.gnt("cluster verify")
        print(said.out)
        assert said.code == 1
        assert f"gnt-instance replace-disks -s {WEB}" in said.out
        assert pair.running() == (here, away, "running")
        if good == "secondary":
            cluster.ok("instance shutdown", WEB)
            print(cluster.ok("instance failover -f --ignore-consistency", WEB))
            assert pair.running()[:2] == (away, here)
        print(cluster.ok("instance replace-disks -s", WEB))
        if good == "secondary":
            cluster.ok("instance startup", WEB)
        cluster.ok("cluster verify")
        case.outcome = "the mirror is not connected; verify names the split brain; both copies stay"
        case.recovery = (
            "instance replace-disks -s"
            if good == "primary"
            else "instance shutdown, failover --ignore-consistency, replace-disks -s, startup"
        )
    pair.await_complete()
    kept = "written-here" if good == "primary" else "written-away"
    assert [mirror.read(node, 12, offset=256) for node in pair.sides()[:1]] == [kept]


def test_a_sync_is_interrupted_by_a_power_cut(pair: Pair, book: Book) -> None:
    kept, away = pair.sides()
    with book.case("DRBD resync", "power cut of the target in the middle") as case:
        away.machine.link(up=False)
        mirror.await_state(kept, cs="WFConnection")
        kept.sh("dd if=/dev/urandom of=/dev/drbd0 bs=1M count=20 seek=8 oflag=direct status=none")
        kept.sh("drbdsetup disk-options 0 --c-plan-ahead=0 --resync-rate=1024")
        away.machine.link(up=True)
        wait_for("a running sync", lambda: mirror.state(kept).get("cs") == "SyncSource", 60.0)
        away.power_cut()
        mirror.await_state(kept, cs="WFConnection")
        assert mirror.state(kept)["ds"].startswith("UpToDate/")
        case.outcome = "the source continues; the target stays inconsistent and is not promoted"
        case.recovery = "power on, instance activate-disks: the sync continues"
    pair.bring_back(away)


def test_the_disk_under_the_primary_fails(pair: Pair, book: Book) -> None:
    cluster, (broken, _) = pair.cluster, pair.sides()
    with book.case("running instance on DRBD", "disk of the primary node fails") as case:
        mirror.break_disk(broken)
        mirror.write(broken, "on-other-disk", offset=256)
        mirror.await_state(broken, ds="Diskless/UpToDate")
        assert mirror.read(broken, 13, offset=256) == "on-other-disk"
        said = cluster.gnt("cluster verify")
        assert f"gnt-instance replace-disks -p {WEB}" in said.out, said.out
        cluster.ok("instance replace-disks -p", WEB)
        pair.await_complete()
        assert pair.running()[2] == "running"
        assert mirror.read(broken, 13, offset=256) == "on-other-disk"
        case.outcome = "continues over the network from the other disk; verify reports it"
        case.recovery = "instance replace-disks -p, while it runs"


def test_the_node_daemon_dies_while_volumes_are_replaced(pair: Pair, book: Book) -> None:
    cluster, (node, _) = pair.cluster, pair.sides()
    fault = "node daemon of the primary node killed in the middle"
    with book.case("gnt-instance replace-disks -p", fault) as case:
        sabotage.stop_at(node, "drbdsetup", "detach")
        ran = cluster.ok("instance replace-disks -p --submit", WEB)
        sabotage.wait_until_stopped(node)
        sabotage.kill_daemon(node)
        watched = cluster.gnt("job watch", (ran.out + ran.err).split()[-1])
        assert watched.code == 1
        sabotage.let_go(node, "drbdsetup")
        node.start("ganeti-noded")
        assert mirror.read(node, 7) == "payload"
        said = cluster.gnt("cluster verify")
        assert "gnt-instance replace-disks -p" in said.out, said.out
        lost = unknown_volumes(said.out)
        node.sh("".join(f"lvremove -q -y {name}\n" for name in lost))
        cluster.ok("instance replace-disks -p", WEB)
        pair.await_complete()
        assert mirror.read(node, 7) == "payload"
        case.outcome = "the job fails, the instance continues over the network; verify tells of it"
        case.recovery = (
            "daemon started again, lvremove of the volumes that verify names, replace-disks -p"
        )
    cluster.ok("cluster verify")


def test_a_third_node_takes_over_and_another_one_becomes_the_secondary(pair: Pair) -> None:
    cluster, (first, old) = pair.cluster, pair.sides()
    third = cluster.nodes[0]
    cluster.ok("instance failover -f -n", third.name, WEB)
    assert pair.running() == (third, first, "running")
    assert old.volumes() == {}
    assert mirror.read(third, 7) == "payload"
    mirror.await_state(third, **mirror.WHOLE)
    assert mirror.checksum(third) == mirror.checksum(first)
    cluster.ok("instance failover -f", WEB)
    cluster.ok("instance replace-disks -n", old.name, WEB)
    assert pair.sides() == (first, old)
    assert third.volumes() == {}
    pair.await_complete()
    assert mirror.read(first, 7) == "payload"


def test_from_a_mirror_to_a_plain_disk_and_back(pair: Pair) -> None:
    cluster, (primary, secondary) = pair.cluster, pair.sides()
    cluster.ok("instance shutdown", WEB)
    cluster.ok("instance modify -t plain", WEB)
    assert secondary.volumes() == {}
    (path,) = primary.volumes()
    assert primary.sh(f"head -c 7 {path}") == "payload"
    cluster.ok("instance modify -t drbd -n", secondary.name, WEB)
    cluster.ok("instance startup", WEB)
    pair.await_complete()
    assert mirror.read(primary, 7) == "payload"


def test_a_mirrored_instance_gets_another_name(pair: Pair) -> None:
    cluster, (primary, secondary) = pair.cluster, pair.sides()
    cluster.ok("instance shutdown", WEB)
    cluster.ok("instance rename", WEB, "web2")
    for node in (primary, secondary):
        assert set(node.sh("lvs --noheadings -o lv_tags xenvg").split()) == {"originstname+web2"}
    cluster.ok("instance startup", "web2")
    assert cluster.cells("instance list -o name,status") == [["web2", "running"]]
    pair.await_complete()
    assert mirror.read(primary, 7) == "payload"
    cluster.ok("cluster verify")


def test_nothing_is_left_of_a_removed_mirror(pair: Pair) -> None:
    pair.cluster.ok("instance remove -f", "web2")
    for node in (pair.left, pair.right):
        assert node.volumes() == {}
        assert mirror.state(node).get("cs", "Unconfigured") == "Unconfigured"
