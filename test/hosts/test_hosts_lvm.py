"""Plain disks on real LVM, through the commands and daemons."""

from __future__ import annotations

import re

from lab import project
from lab.cluster import VG, Cluster
from lab.faults import Book


def test_the_contract_of_disks_holds_on_real_volumes(cluster: Cluster) -> None:
    """All of what ``test_one_host.py`` runs a part of."""
    machine = cluster.nodes[2].machine
    project.run_tests(machine, "test/contract/storage", "plain", {"GANETI_TEST_VG": VG})
    assert cluster.nodes[2].volumes() == {}


def test_disks_live_grow_and_survive_a_power_cut(cluster: Cluster, book: Book) -> None:
    node = cluster.nodes[1]
    cluster.add("web1", "plain", node, "--disk", "0:size=64M", "--disk", "1:size=32M")
    assert sorted(node.volumes().values()) == [32, 64]
    tags = node.sh(f"lvs --noheadings -o lv_tags {VG}").split()
    assert tags == ["originstname+web1"] * 2
    cluster.ok("instance grow-disk", "web1", "0", "32M")
    assert sorted(node.volumes().values()) == [32, 96]
    assert cluster.cells("instance list -o disk.sizes", "web1") == [["96,32"]]
    cluster.ok("instance modify --disk 1:remove", "web1")
    (path,) = node.volumes()
    node.sh(f"printf payload | dd of={path} conv=notrunc,fsync status=none")
    with book.case("running instance with plain disks", "power cut of its node") as case:
        node.power_cut()
        node.power_on()
        assert cluster.cells("instance list -o status", "web1") == [["ERROR_down"]]
        cluster.ok("instance startup", "web1")
        assert cluster.cells("instance list -o status", "web1") == [["running"]]
        assert node.sh(f"head -c 7 {path}") == "payload"
        case.outcome = "ERROR_down when the node is back; disks and data are whole"
        case.recovery = "gnt-instance startup"
    cluster.ok("instance remove -f", "web1")
    assert node.volumes() == {}


def test_a_volume_is_adopted_with_its_data(cluster: Cluster, book: Book) -> None:
    node = cluster.nodes[1]
    node.sh(f"lvcreate -q -y -L 32m -n mine {VG}; printf before > /dev/{VG}/mine")
    cluster.add("web1", "plain", node, "--disk", "0:adopt=mine", "--no-install", "--no-start")
    (path,) = node.volumes()
    assert node.sh(f"head -c 6 {path}") == "before"
    with book.case(
        "gnt-instance add -t plain --disk 0:adopt=", "the volume belongs to another"
    ) as case:
        name = path.rpartition("/")[2]
        words = ["--disk", f"0:adopt={name}", "--no-install", "--no-start"]
        ran = cluster.try_add("web2", "plain", node, *words)
        assert ran.code == 1, ran.out
        assert list(node.volumes()) == [path]
        case.outcome = "refused, nothing changed"
    cluster.ok("instance remove -f", "web1")
    assert node.volumes() == {}


def test_what_cannot_be_made_leaves_nothing(cluster: Cluster, book: Book) -> None:
    node = cluster.nodes[1]
    with book.case("gnt-instance add -t plain", "volume group too small") as case:
        ran = cluster.try_add("web1", "plain", node, "--disk", "0:size=4G")
        assert ran.code == 1
        assert re.search("not enough space in xenvg on node node2.*needed 4096 MiB", ran.err)
        case.outcome = "refused, nothing left behind"
    with book.case("gnt-instance add -t plain", "volume group missing on the node") as case:
        node.sh(f"vgrename -q {VG} other")
        ran = cluster.try_add("web1", "plain", node, "--disk", "0:size=64M")
        assert ran.code == 1
        assert VG in ran.err
        node.sh(f"vgrename -q other {VG}")
        case.outcome, case.recovery = "refused, nothing left behind", "bring the group back"
    assert cluster.cells("instance list -o name") == []
    assert node.volumes() == {}
