"""gnt-disk on a running cluster: disks live, move between instances and keep what is on them."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_cluster import Cluster
from storage_nodes import StorageNodes
from waiting import wait_for

pytestmark = pytest.mark.long

ONE, TWO = "one.example.com", "two.example.com"
MIB = 1 << 20
LEFT = "0a1b2c3d-0000-4000-8000-000000000001.file.disk0"
Both = tuple[Cluster, StorageNodes]


@pytest.fixture(scope="module", autouse=True)
def instances(storage_cluster: Both) -> Iterator[None]:
    """Two stopped instances on node2, with one file disk each."""
    cluster, nodes = storage_cluster
    cluster.ok(
        "cluster modify --ipolicy-bounds-specs min:disk-size=1,nic-count=0/max:disk-size=1000000"
    )
    for name in (ONE, TWO):
        assert cluster.add(name, "--no-start").code == 0
    yield
    for name in (ONE, TWO):
        cluster.gnt("instance shutdown", name)
        cluster.ok("instance remove -f", name)
    assert cluster.cells("disk list -o uuid") == []
    assert cluster.disks() == []
    assert [nodes.volumes(f"node{n}") for n in (1, 2, 3)] == [{}, {}, {}]
    cluster.ok("cluster verify")


def value(cluster: Cluster, disk: str, field: str) -> str:
    return cluster.cells(f"disk list -o {field}", disk)[0][0]


def place(both: Both, disk: str) -> Path:
    """Where the bytes of a disk are, on the first of its nodes."""
    cluster, nodes = both
    node = (value(cluster, disk, "nodes") or "node1.example.com").split(",")[0].split(".")[0]
    path = value(cluster, disk, "path")
    if path != "-":
        local = Path(path)
        return local if local.exists() else cluster.root(node) / path.lstrip("/")
    return nodes.path(node, value(cluster, disk, "volumes").split(",")[0])


def checksum(both: Both, disk: str, size: int = MIB) -> str:
    with place(both, disk).open("rb") as data:
        return hashlib.sha256(data.read(size)).hexdigest()


def fill(both: Both, disk: str) -> str:
    """Write as a guest would; the checksum of it."""
    with place(both, disk).open("r+b") as data:
        data.write(os.urandom(MIB))
    return checksum(both, disk)


def check_refused(cluster: Cluster, line: str, text: str) -> None:
    """The command fails with a text, and nothing changes."""
    before = cluster.config()
    ran = cluster.gnt(line)
    assert ran.code == 1, ran.out
    assert text in " ".join(ran.err.split()), ran.err
    assert cluster.config() == before


@pytest.mark.parametrize(
    ("words", "template", "nodes"),
    [
        ("-t file -s 8m -n node2", "file", "node2.example.com"),
        ("-t plain -s 8m -n node2", "plain", "node2.example.com"),
        ("-t drbd -s 8m -n node2:node3", "drbd", "node2.example.com,node3.example.com"),
        ("-t sharedfile -s 8m", "sharedfile", ""),
        ("-t file -s 8m -I most-free", "file", None),
    ],
)
def test_a_disk_without_an_instance(
    storage_cluster: Both, words: str, template: str, nodes: str | None
) -> None:
    cluster, _nodes = storage_cluster
    uuid = cluster.ok(f"disk add {words} --name spare --mode ro --tags a,b").lines[-1]
    row = cluster.cells("disk list -o uuid,name,size,template,instance,mode,tags,nodes", "spare")
    assert row[0][:-1] == [uuid, "spare", "8", template, "-", "ro", "a,b"]
    assert nodes in (None, row[0][-1])
    cluster.ok("cluster verify")
    written = fill(storage_cluster, "spare")
    cluster.ok("disk grow spare 8m")
    assert value(cluster, "spare", "size") == "16"
    assert checksum(storage_cluster, "spare") == written
    cluster.ok("disk modify --mode rw spare")
    check_refused(cluster, "disk modify --spindles 2 spare", "exclusive storage is not active")
    cluster.ok("disk rename spare other")
    cluster.ok("disk add-tags other c")
    cluster.ok("disk remove-tags other a")
    assert cluster.ok("disk list-tags other").lines == ["b", "c"]
    shown = cluster.ok("disk info other").out
    assert "Instance: none (detached)" in shown
    assert uuid in cluster.ok("cluster search-tags ^c$").out
    cluster.ok("cluster verify")
    cluster.ok("disk remove -f other")
    check_refused(cluster, "disk info other", "disk 'other' is not known")
    cluster.ok("cluster verify")


def test_data_goes_along(storage_cluster: Both) -> None:
    """Attach, rename and removal of others, convert, grow, detach: the bytes stay."""
    cluster, _nodes = storage_cluster
    cluster.ok("disk add -t file -s 8m -n node2 --name data")
    written = fill(storage_cluster, "data")
    cluster.ok("disk attach --index 0 data", ONE)
    assert cluster.cells("disk list -o index,instance", "data") == [["0", ONE]]
    assert cluster.cells("instance list -o disk.count", ONE) == [["2"]]
    for template, more in (
        ("plain", ""),
        ("drbd", "-n node3"),
        ("file", ""),
        ("sharedfile", ""),
        ("plain", ""),
    ):
        cluster.ok(f"instance modify -t {template} {more} {ONE}")
        assert checksum(storage_cluster, "data") == written, template
        assert cluster.cells("instance list -o disk_template", ONE) == [[template]]
    cluster.ok(f"disk grow {ONE}/0 8m")
    cluster.ok("disk detach data")
    cluster.ok("instance modify --disk 0:attach,name=data", TWO)
    assert cluster.cells("instance list -o disk_template,disk.sizes", TWO) == [["mixed", "16,8"]]
    assert checksum(storage_cluster, "data") == written
    cluster.ok("instance modify -t drbd -n node3", TWO)
    assert cluster.cells("instance list -o disk_template", TWO) == [["drbd"]]
    assert checksum(storage_cluster, "data") == written
    check_refused(cluster, f"instance modify -t drbd {TWO}", "already has disk template drbd")
    cluster.ok("instance modify -t file", TWO)
    cluster.ok("instance modify --disk data:detach", TWO)
    cluster.ok("instance modify -t file", ONE)
    assert checksum(storage_cluster, "data") == written
    cluster.ok("cluster verify")
    cluster.ok("disk remove -f data")


def test_what_an_os_wrote_outlives_its_instance(storage_cluster: Both) -> None:
    cluster, _nodes = storage_cluster
    three = "three.example.com"
    cluster.ok(
        "instance add -n node2 -o bootsector+beat -t file --disk 0:size=8M --no-nics",
        "--no-start",
        three,
    )
    [[uuid]] = cluster.cells("disk list -o uuid --filter", f'instance == "{three}"')
    written = checksum(storage_cluster, uuid)
    assert place(storage_cluster, uuid).read_bytes()[510:512] == b"\x55\xaa"
    cluster.ok("instance modify -t plain", three)
    cluster.ok("disk detach", uuid)
    cluster.ok("instance remove -f", three)
    cluster.ok("disk attach --index 0", uuid, TWO)
    cluster.ok("disk grow", uuid, "8m")
    assert checksum(storage_cluster, uuid) == written
    cluster.ok(f"instance modify --disk {uuid}:remove", TWO)


@pytest.mark.parametrize(
    ("attach", "detach"),
    [
        ("--disk attach,name=x", "--disk detach"),
        ("--disk attach,uuid=UUID", "--disk detach"),
        ("--disk attach:name=x", "--disk -1:detach"),
        ("--disk 0:attach,name=x", "--disk 0:detach"),
        ("--disk 1:attach,uuid=UUID", "--disk x:detach"),
        ("--disk 0:attach,uuid=UUID", "--disk UUID:detach"),
        ("--disk 0:attach,name=x", "--disk x:detach --disk attach:name=x --disk 1:detach"),
    ],
)
def test_every_form_of_the_option(storage_cluster: Both, attach: str, detach: str) -> None:
    cluster, _nodes = storage_cluster
    uuid = cluster.ok("disk add -t file -s 4m -n node2 --name x").lines[-1]
    cluster.ok(f"instance modify {attach.replace('UUID', uuid)} {ONE}")
    assert value(cluster, "x", "instance") == ONE
    cluster.ok(f"instance modify {detach.replace('UUID', uuid)} {ONE}")
    assert value(cluster, "x", "attached") == "N"
    cluster.ok("disk remove -f x")


def test_what_cannot_be_done(storage_cluster: Both) -> None:
    cluster, _nodes = storage_cluster
    cluster.ok("disk add -t plain -s 8m -n node3 --name far")
    cluster.ok("disk add -t file -s 4m -n node2 --name near")
    cluster.ok(f"disk attach near {ONE}")
    for line, text in (
        (f"disk attach near {TWO}", f"is attached to instance {ONE}; detach it first"),
        (f"instance modify --disk attach:name=near {TWO}", f"belongs to an instance ({ONE})"),
        (f"instance modify --disk attach:name=near {ONE}", "is attached to this instance already"),
        (f"disk attach far {ONE}", "is on node3.example.com, but the primary node"),
        ("disk remove -f near", f"is disk 1 of instance {ONE}; detach it first"),
        ("disk detach far", "is not attached to an instance"),
        ("disk rename far near", "another disk is called 'near' already; see gnt-disk list"),
        ("disk rename far 7", "cannot be the name of a disk"),
        ("disk grow --absolute far 4m", "disks cannot shrink"),
        ("disk grow far 900t", "not enough space"),
        ("disk add -t plain -s 4m", "say where to make the disk"),
        ("disk add -t plain -s 4m -n node1 -I most-free", "either nodes or an allocator"),
        ("disk add -t plain -s 4m -n nosuch", "node 'nosuch' is not known"),
        ("disk add -t drbd -s 4m -n node1", "needs a secondary node"),
        ("disk add -t rbd -s 4m -n node1", "rbd is not enabled"),
        ("disk add -t diskless -s 4m -n node1", "cannot have the template diskless"),
        ("disk add -t file -s 900t -n node1", "not enough space"),
        ("disk add -t file -s 4m -n node1 -e adopt=x", "can only be adopted"),
        ("disk add -t file -s 4m -n node1 --name far", "is called 'far' already"),
        ("disk add -t file -s 4m -n node1 -e colour=red", "unknown key colour"),
        ("disk add -t file -n node1", "Template and size of the disk are missing"),
        ("disk modify far", "Nothing to change"),
        ("disk info nosuch", "disk 'nosuch' is not known"),
        ("node remove node3", "still holds 1 detached disk (far)"),
        (f"instance modify --disk add:size=4m,dev_type=drbd {ONE}", "needs a secondary node"),
    ):
        check_refused(cluster, line, text)
    cluster.ok("node modify --offline=yes -f node3")
    check_refused(cluster, "disk remove -f far", "node node3.example.com is marked offline")
    cluster.ok("node modify --offline=no -f node3")
    cluster.ok("disk detach near")
    place(storage_cluster, "near").unlink()
    check_refused(cluster, f"disk attach near {ONE}", "is not there on node node2.example.com")
    told = cluster.gnt("cluster verify").out
    assert f"gnt-disk remove {value(cluster, 'near', 'uuid')} forgets it" in told
    cluster.ok("disk remove -f near far")


def test_mixed_disks_are_each_handled_as_they_are(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    cluster.ok("instance modify --disk add:size=8m,dev_type=plain,name=p", TWO)
    cluster.ok("instance modify --disk add:size=8m,dev_type=drbd,name=d --node node3", TWO)
    assert cluster.cells("instance list -o disk_template,snodes", TWO) == [
        ["mixed", "node3.example.com"]
    ]
    check_refused(cluster, f"instance modify --disk add:size=4m {TWO}", "say how disk 3 is stored")
    cluster.ok("instance startup", TWO)
    cluster.ok("cluster verify")
    cluster.ok("cluster verify-disks")
    cluster.ok("instance info", TWO)
    cluster.ok("instance shutdown", TWO)
    cluster.ok("instance activate-disks", TWO)
    cluster.ok("instance deactivate-disks", TWO)
    written = fill(storage_cluster, "p")
    held = "disk/0 (file), disk/1 (plain) of instance two.example.com (template mixed) are on"
    for line, text in (
        (f"instance failover -f {TWO}", held),
        (f"instance migrate -f {TWO}", held),
        (f"instance move -f -n node1 {TWO}", "disk/2 of instance two.example.com cannot be copied"),
        (f"instance replace-disks -s --disks 1 {TWO}", "disk/1 of two.example.com has template"),
    ):
        check_refused(cluster, line, text)
    cluster.ok("disk grow p 4m")
    cluster.ok("instance replace-disks -s", TWO)
    cluster.ok("instance replace-disks -n node1", TWO)
    assert cluster.cells("instance list -o snodes", TWO) == [["node1.example.com"]]
    planned = cluster.ok("node evacuate --dry-run -s -n node3 node1").lines
    assert f"{TWO}: replace-disks to node node3.example.com" in planned
    cluster.ok("node evacuate -f -s -n node3 node1")
    assert cluster.cells("instance list -o snodes", TWO) == [["node3.example.com"]]
    assert checksum(storage_cluster, "p") == written
    cluster.ok("instance modify -t plain", TWO)
    assert checksum(storage_cluster, "p") == written
    assert nodes.volumes("node3") == {}
    cluster.ok("disk add -t sharedfile -s 4m --name s")
    cluster.ok("disk attach s", TWO)
    cluster.ok("instance move -f -n node1", TWO)
    assert value(cluster, "p", "nodes") == "node1.example.com"
    assert value(cluster, "s", "nodes") == ""
    assert checksum(storage_cluster, "p") == written
    cluster.ok("instance move -f -n node2", TWO)
    nodes.run("node2", "lvremove", "-f", value(cluster, "p", "volumes"))
    cluster.ok("instance recreate-disks --disk 1", TWO)
    cluster.ok("instance modify --disk p:remove --disk d:remove --disk s:remove", TWO)
    cluster.ok("instance modify -t file", TWO)
    cluster.ok("cluster verify")


def test_verification_names_what_nobody_knows(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    directory = cluster.root("node3") / "srv/ganeti/file-storage/left"
    directory.mkdir(parents=True)
    (directory / LEFT).write_bytes(b"x")
    nodes.run("node3", "lvcreate", "-L", "4m", "-n", "left.disk0", "xenvg")
    told = cluster.gnt("cluster verify")
    assert told.code == 1
    assert f"file /srv/ganeti/file-storage/left/{LEFT} belongs to no disk" in told.out
    assert "if its content is not needed: lvremove xenvg/left.disk0" in told.out
    nodes.run("node3", "lvremove", "-f", "xenvg/left.disk0")
    (directory / LEFT).unlink()
    directory.rmdir()
    cluster.ok("cluster verify")


def test_a_running_guest_gets_and_gives_a_disk(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    cluster.ok("disk add -t plain -s 8m -n node2 --name hot")
    written = fill(storage_cluster, "hot")
    cluster.ok("instance startup", ONE)
    warned = cluster.ok("instance modify --disk 0:mode=ro", ONE).out
    assert "the guest sees the new mode of disk 0 after its next start" in warned
    assert (
        "sees the new mode after its next start" in cluster.ok(f"disk modify --mode rw {ONE}/0").out
    )
    links = cluster.paths("node2").instance_disks
    cluster.ok(f"disk attach hot {ONE}")
    [volume] = nodes.volumes("node2")
    assert nodes.tags("node2", *volume.split("/")) == [f"originstname+{ONE}"]
    assert sorted(path.name for path in links.iterdir()) == [f"{ONE}:0", f"{ONE}:1"]
    check_refused(cluster, "disk detach --no-hotplug hot", "cannot be removed or detached while")
    cluster.ok("disk detach hot")
    assert [path.name for path in links.iterdir()] == [f"{ONE}:0"]
    assert checksum(storage_cluster, "hot") == written
    script = cluster.paths("node2").conf / "fake-hypervisor.json"
    script.write_text(json.dumps({"plug_disk": {"*": {"fail": "no slot is left"}}}))
    ran = cluster.ok(f"disk attach hot {ONE}")
    script.unlink()
    assert "no slot is left" in ran.out
    told = cluster.ok("cluster verify").out
    assert f"its guest runs without disk/1 ({value(cluster, 'hot', 'uuid')})" in told
    cluster.ok("instance reboot --type=full", ONE)
    assert "its guest runs" not in cluster.ok("cluster verify").out
    cluster.ok("instance shutdown", ONE)
    cluster.ok("disk detach hot")
    cluster.ok("disk remove -f hot")


def test_a_conversion_that_was_cut_off_is_named_and_repaired(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    three = "three.example.com"
    cluster.ok(
        "instance add -n node2 -o noop -t plain --disk 0:size=8M --no-nics --no-start", three
    )
    [[uuid]] = cluster.cells("disk list -o uuid --filter", f'instance == "{three}"')
    written = fill(storage_cluster, uuid)
    nodes.slow_sync(60.0)
    cluster.ok("instance modify --submit -t drbd -n node3", three)
    wait_for(lambda: nodes.mirrors("node3"), "the mirror is being made", 30)
    cluster.kill_master()
    assert cluster.start_master().code == 0
    nodes.slow_sync(0)
    told = cluster.gnt("cluster verify").out
    assert "unallocated drbd minor 0 is in use" in told
    for node, words in re.findall(r"node (node\d)\S*: .*: (drbdsetup .*|lvremove .*)", told):
        for command in words.split(" && "):
            tool, *rest = command.split()
            nodes.run(node, tool, *(["-f"] if tool == "lvremove" else []), *rest)
    cluster.ok("cluster verify")
    assert cluster.cells("instance list -o disk_template", three) == [["plain"]]
    assert checksum(storage_cluster, uuid) == written
    cluster.ok("instance modify -t drbd -n node3", three)
    assert checksum(storage_cluster, uuid) == written
    cluster.ok("instance remove -f", three)


def test_a_new_disk_that_cannot_be_made_leaves_nothing(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    nodes.fail("lvcreate", "  no such luck", node="node3", match="_meta", times=None)
    ran = cluster.gnt("disk add -t drbd -s 8m -n node2:node3")
    nodes.clear_rules()
    assert ran.code == 1
    assert "no such luck" in ran.err
    assert cluster.cells("disk list --filter", "not attached") == []
    assert [nodes.volumes(f"node{n}") for n in (2, 3)] == [{}, {}]
    cluster.ok("cluster verify")
