"""Disks in LVM and of providers: creation, refusals, lists, settings, repair, verification."""

from __future__ import annotations

import loop_lvm
import loop_provider
from local_cluster import Cluster
from storage_nodes import StorageNodes

Both = tuple[Cluster, StorageNodes]


def test_a_volume_group_must_be_on_the_nodes(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    refused = cluster.gnt("cluster modify --vg-name=nonevg")
    assert refused.code == 1
    assert "there is no volume group 'nonevg' on node1.example.com, node2" in refused.err
    for node in ("node1", "node2", "node3"):
        nodes.add_group(node, "fastvg", 1024)
    cluster.ok("cluster modify --vg-name=fastvg")
    cluster.ok("cluster modify --vg-name=xenvg")


def test_an_instance_that_does_not_fit_is_refused_before_anything_is_made(
    storage_cluster: Both,
) -> None:
    cluster, nodes = storage_cluster
    add = "instance add -n node1 -o noop -t plain --no-nics"
    refused = cluster.gnt(f"{add} --disk 0:size=5G --disk 1:size=4G", "big.example.com")
    assert "not enough space in xenvg on node node1.example.com" in refused.err
    assert "needed 9216 MiB, free 8192 MiB" in refused.err
    refused = cluster.gnt(f"{add} --disk 0:size=1G --disk 1:size=2G,vg=fastvg", "big.example.com")
    assert "not enough space in fastvg" in refused.err
    assert nodes.volumes("node1") == {}


def test_a_failure_in_the_middle_leaves_no_volume(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    nodes.fail("lvcreate", "  Device or resource busy", node="node1", match="disk1")
    refused = cluster.gnt(
        "instance add -n node1 -o noop -t plain --no-nics --disk 0:size=64M --disk 1:size=64M",
        "half.example.com",
    )
    assert "Device or resource busy" in refused.err
    assert nodes.volumes("node1") == {}
    assert cluster.cells("instance list -o name") == []


def test_volumes_are_listed_with_their_instances(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    cluster.ok(
        "instance add -n node2 -o noop -t plain --no-nics --disk 0:size=64M"
        " --disk 1:size=32M,vg=fastvg",
        "web.example.com",
    )
    nodes.run("node2", "lvcreate", "-y", "-n", "root", "-L", "128m", "xenvg")
    rows = cluster.cells("node volumes -o vg,size,instance,phys", "node2")
    assert sorted(rows) == [
        ["fastvg", "32", "web.example.com", "/dev/fastvg-disk"],
        ["xenvg", "128", "-", "/dev/sda"],
        ["xenvg", "64", "web.example.com", "/dev/sda"],
    ]
    assert "128M" in cluster.ok("node volumes -o size", "node2").out
    assert cluster.gnt("node volumes -o speed").code == 1
    [name] = [n for n in nodes.volumes("node2") if n.startswith("fastvg")]
    group, volume = name.split("/")
    assert nodes.tags("node2", group, volume) == ["originstname+web.example.com"]


def test_storage_units_are_listed(storage_cluster: Both) -> None:
    cluster, _nodes = storage_cluster
    rows = cluster.cells("node list-storage -t lvm-vg -o node,name,size,used,free", "node2")
    assert ["node2.example.com", "xenvg", "8192", "192", "8000"] in rows
    rows = cluster.cells("node list-storage -t lvm-pv -o type,name,allocatable", "node3")
    assert ["lvm-pv", "/dev/sda", "Y"] in rows
    # Without a type it is that of the first template.
    assert cluster.cells("node list-storage -o type", "node3")[0] == ["lvm-vg"]
    [[name, *_]] = cluster.cells("node list-storage -t file -o name,used", "node1")
    assert name == "/srv/ganeti/file-storage"


def test_a_physical_volume_can_be_closed_for_new_volumes(storage_cluster: Both) -> None:
    cluster, _nodes = storage_cluster
    cluster.ok("node modify-storage --allocatable no node3 lvm-pv /dev/sda")
    rows = cluster.cells("node list-storage -t lvm-pv -o name,allocatable", "node3")
    assert ["/dev/sda", "N"] in rows
    refused = cluster.gnt(
        "instance add -n node3 -o noop -t plain --no-nics --disk 0:size=64M", "no.example.com"
    )
    assert "has no disk on this node that may be used" in refused.err
    cluster.ok("node modify-storage --allocatable yes node3 lvm-pv /dev/sda")
    refused = cluster.gnt("node modify-storage --allocatable no node3 lvm-pv /dev/nothing")
    assert "no physical volume '/dev/nothing'" in refused.err


def test_verification_knows_every_volume(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    found = cluster.gnt("cluster verify --error-codes").out
    assert "ENODEORPHANLV:node:node2.example.com:volume xenvg/root is unknown" in found
    cluster.ok("cluster modify --reserved-lvs=xenvg/root")
    cluster.ok("cluster verify")
    [name] = [n for n in nodes.volumes("node2") if n.startswith("fastvg")]
    nodes.run("node2", "lvchange", "-an", name)
    found = cluster.gnt("cluster verify --error-codes").out
    assert f"EINSTANCEFAULTYDISK:instance:web.example.com:volume {name} of disk/1" in found
    assert "is not active" in found
    nodes.run("node2", "lvremove", "-f", name)
    found = cluster.gnt("cluster verify --error-codes").out
    assert f"EINSTANCEMISSINGDISK:instance:web.example.com:volume {name} of disk/1" in found
    nodes.fail("vgs", "  metadata is damaged", node="node3")
    found = cluster.gnt("cluster verify --error-codes").out
    assert "ENODELVM:node:node3.example.com:volume groups: check vglist failed" in found
    assert "metadata is damaged" in found


def test_storage_of_a_node_is_repaired(storage_cluster: Both) -> None:
    cluster, _nodes = storage_cluster
    cluster.ok("node repair-storage node3 lvm-vg xenvg")
    refused = cluster.gnt("node repair-storage node3 lvm-vg nonevg")
    assert "no volume group 'nonevg'" in refused.err


def test_existing_volumes_are_adopted_with_their_content(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    for name in ("old1", "old2"):
        nodes.run("node1", "lvcreate", "-y", "-n", name, "-L", "16m", "xenvg")
    nodes.path("node1", "xenvg/old1").write_bytes(b"precious".ljust(16 << 20, b"\0"))
    before = nodes.checksum("node1", "xenvg", "old1")
    add = "instance add -n node1 -o noop -t plain --no-nics"
    for disks, reason in (
        ("--disk 0:adopt=nothing", "there is no logical volume xenvg/nothing on node node1"),
        ("--disk 0:adopt=old1 --disk 1:adopt=old1", "xenvg/old1 is to be adopted twice"),
        ("--disk 0:adopt=old1 --disk 1:size=8M", "either all disks"),
    ):
        refused = cluster.gnt(f"{add} {disks}", "kept.example.com")
        assert reason in refused.err
    nodes.fail("lvrename", "  busy", node="node1", match="old2")
    adopt = f"{add} --disk 0:adopt=old1 --disk 1:adopt=old2"
    assert "busy" in cluster.gnt(adopt, "kept.example.com").err
    assert set(nodes.volumes("node1")) >= {"xenvg/old1", "xenvg/old2"}
    done = cluster.ok(adopt, "kept.example.com")
    assert "creating instance disks" not in done.out
    assert cluster.cells("instance list -o disk.sizes", "kept.example.com") == [["16,16"]]
    [volume] = [name for name in nodes.volumes("node1") if name.endswith(".disk0")]
    assert nodes.checksum("node1", *volume.split("/")) == before
    again = cluster.gnt(f"{add} --disk 0:adopt={volume.split('/')[1]}", "thief.example.com")
    assert "belongs to instance kept.example.com" in again.err
    assert volume not in cluster.gnt("cluster verify").out


def test_new_space_is_wiped_when_the_cluster_wants_it(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    cluster.ok("cluster modify --prealloc-wipe-disks=yes")
    add = "instance add -n node3 -o noop -t plain --no-nics --no-install --no-start"
    done = cluster.ok(f"{add} --disk 0:size=8M", "clean.example.com").out
    assert "* wiping 8M of disk/0..." in done
    [volume] = nodes.volumes("node3")
    device = nodes.path("node3", volume)
    device.write_bytes(b"\xff" * (8 << 20))
    done = cluster.ok("instance grow-disk clean.example.com 0 4M").out
    assert "* wiping 4M of disk/0..." in done
    content = device.read_bytes()
    assert content == b"\xff" * (8 << 20) + bytes(4 << 20)
    # Files have no past.
    done = cluster.ok(f"{add.replace('plain', 'file')} --disk 0:size=8M", "file.example.com").out
    assert "wiping" not in done
    mirrored = add.replace("plain", "drbd").replace("node3", "node3:node1")
    done = cluster.ok(f"{mirrored} --disk 0:size=8M", "mirror.example.com").out
    assert "* wiping 8M of disk/0..." in done
    assert "WARNING" not in done
    cluster.ok("cluster modify --prealloc-wipe-disks=no")
    for name in ("clean", "file", "mirror"):
        cluster.ok("instance remove -f", f"{name}.example.com")


def test_disks_of_a_provider(storage_cluster: Both) -> None:
    loop_lvm.skip_if_unavailable()
    cluster, nodes = storage_cluster
    volumes = nodes.roots["node1"].parent / "array"
    for node in ("node1", "node2"):
        path = cluster.paths(node).extstorage_search_path[0] / "array"
        loop_provider.install(path, volumes)
    shown = cluster.ok("storage diagnose").out
    assert "Provider: array\n  Node: node1.example.com, status: valid (path: " in shown
    assert "[parameters: tier, pool]" in shown
    assert "Node: node3.example.com, status: ExtStorage provider not found" in shown
    assert "For nodegroup: default --> invalid" in shown
    shown = cluster.ok("storage info array nothing").out
    assert "  - Invalid for all nodegroups" in shown
    assert "nothing: Not Found" in shown
    cluster.ok(
        "cluster modify --enabled-disk-templates=plain,file,diskless,ext"
        " --ipolicy-disk-templates=plain,file,diskless,ext"
    )
    add = "instance add -n node1 -o noop -t ext --no-nics"
    refused = cluster.gnt(f"{add} --disk 0:size=8M", "web2.example.com")
    assert "needs a provider" in refused.err
    refused = cluster.gnt(f"{add} --disk 0:size=8M,provider=array,teir=fast", "web2.example.com")
    assert "no parameter 'teir' (did you mean tier?)" in refused.err
    assert cluster.gnt("instance list", "web2.example.com").code == 1
    cluster.ok(f"{add} --disk 0:size=8M,provider=array,tier=fast", "web2.example.com")
    [volume] = [path for path in volumes.iterdir() if path.name.endswith(".ext.disk0")]
    assert volume.stat().st_size == 8 << 20
    created = dict(loop_provider.calls(volumes))["create"]
    assert (created["EXTP_TIER"], created["VOL_SIZE"]) == ("fast", "8")
    info = (volumes / f"{volume.name}.info").read_text()
    assert info == "originstname+web2.example.com\n"
    cluster.ok("instance remove -f web2.example.com")
    assert not volume.exists()
    assert str(volumes) not in loop_lvm.run("losetup", "-a")
