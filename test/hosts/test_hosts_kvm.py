"""Instances that really run: KVM inside the nodes, on mirrored disks, moved while they count."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from lab import mirror
from lab.channel import wait_for
from lab.cluster import Cluster, Node
from lab.faults import Book

VM = "vm1"
_PARAMS = (
    "kvm:kernel_path=/opt/tiny/vmlinux,initrd_path=/opt/tiny/initrd,root_path=/dev/vda,"
    "kernel_args=console=ttyS0 quiet panic=-1 mitigations=off,serial_console=true,vhost_net=false"
)
_SERIAL = f"/var/run/ganeti/kvm-hypervisor/ctrl/{VM}.serial"
#: Seconds in which an instance must count; one boot in some tens hangs and is tried once more.
BOOT_LIMIT = 90.0


def count(node: Node) -> int:
    """The last number that the instance counted on its console within some seconds; -1: none."""
    script = f"timeout 6 socat -u UNIX-CONNECT:{_SERIAL} - || true"
    said = re.findall(r"BEAT (\d+)\r?\n", node.run("bash", "-c", script).out)
    return int(said[-1]) if said else -1


def counts(node: Node) -> int:
    found: int = wait_for("a counting instance", lambda: max(count(node), 0), BOOT_LIMIT)
    return found


@pytest.fixture
def vm(cluster: Cluster) -> Iterator[None]:
    """A running instance on the second node, mirrored on the third."""
    second, third = cluster.nodes[1:3]
    cluster.ok(
        "instance add -t drbd -o noop --no-nics -B minmem=160,maxmem=160 --disk 0:size=32M",
        "-H", _PARAMS, "-n", f"{second.name}:{third.name}", VM,
    )  # fmt: skip
    try:
        counts(second)
    except Exception:
        cluster.ok("instance reboot -t hard", VM)
        counts(second)
    yield
    cluster.ok("instance remove -f", VM)


def test_a_running_instance_is_moved_and_survives_its_node(
    cluster: Cluster, vm: None, book: Book
) -> None:
    source, target = cluster.nodes[1:3]
    before = counts(source)
    with book.case("gnt-instance migrate", "none: a live KVM instance on DRBD") as case:
        cluster.ok("instance migrate -f", VM)
        assert counts(target) > before
        case.outcome = "the instance counts on, on the other node"
    ((node, status),) = cluster.cells("instance list -o pnode,status", VM)
    assert (node, status) == (target.name, "running")
    mirror.until(target, **mirror.WHOLE)
    assert mirror.state(target)["ro"] == "Primary/Secondary"
    assert source.run("pgrep", "-f", "qemu-system.*vm1").code == 1
    with book.case("running KVM instance on DRBD", "power cut of its node") as case:
        target.power_cut()
        mirror.until(source, cs="WFConnection")
        cluster.ok("node modify --offline=yes", target.name)
        cluster.ok("instance failover -f --ignore-consistency", VM)
        counts(source)
        case.outcome = "starts on the other half"
        case.recovery = "node modify --offline=no, instance activate-disks"
        target.power_on()
        cluster.ok("node modify --offline=no", target.name)
        cluster.ok("instance activate-disks", VM)
        mirror.until(source, **mirror.WHOLE)
    assert mirror.checksum(source) == mirror.checksum(target)
