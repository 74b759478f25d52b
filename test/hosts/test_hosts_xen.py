"""Instances on Xen: two of the nodes boot into it, with mirrored disks below the guests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from lab import mirror
from lab.channel import wait_for
from lab.cluster import Cluster, Node
from lab.faults import Book
from lab.place import Unavailable

if TYPE_CHECKING:
    from conftest import Holder

PVH, PV = "pvh1", "pv1"
_PARAMS = (
    "initrd_path=/opt/tiny/initrd,root_path=/dev/xvda,blockdev_prefix=xvd,"
    "kernel_args=console=hvc0 quiet panic=-1"
)
#: A kernel of each kind: Xen enters an ELF file of a PVH guest itself, a PV guest's it unpacks.
_KINDS = {
    PVH: f"xen-pvm:guest_type=pvh,kernel_path=/opt/tiny/vmlinux,{_PARAMS}",
    PV: f"xen-pvm:guest_type=pv,kernel_path=/opt/tiny/vmlinuz,{_PARAMS}",
}
BOOT_LIMIT = 120.0


def count(node: Node, name: str) -> int:
    """The last number that a guest counted on its console; -1: none."""
    log = node.sh(f"cat /var/log/xen/guest-{name}.log /var/log/xen/guest-{name}--incoming.log || :")
    said = re.findall(r"BEAT (\d+)\r?\n", log)
    return int(said[-1]) if said else -1


def counts_past(node: Node, name: str, number: int) -> None:
    wait_for(f"{name} past {number}", lambda: count(node, name) > number, BOOT_LIMIT, 0.5)


@pytest.fixture(scope="module")
def xen(holder: Holder) -> Iterator[Cluster]:
    """The cluster with its second and third node in Xen; the next module gets a new one."""
    try:
        cluster = holder.get()
    except Unavailable as err:
        pytest.skip(str(err))
    cluster.boot_into_xen(cluster.nodes[1:])
    cluster.ok("cluster modify --enabled-hypervisors=fake,kvm,xen-pvm")
    yield cluster
    holder.drop()


@pytest.fixture
def guest(xen: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A counting guest of the kind that is asked for, on the second node, mirrored on the third."""
    name: str = request.param
    second, third = xen.nodes[1:3]
    xen.ok(
        "instance add -t drbd -o noop --no-nics -B minmem=160,maxmem=160 --disk 0:size=32M",
        "-H", _KINDS[name], "-n", f"{second.name}:{third.name}", name,
    )  # fmt: skip
    counts_past(second, name, 0)
    yield name
    xen.ok("instance remove -f", name)


@pytest.mark.parametrize("guest", [PVH], indirect=True)
def test_a_guest_is_moved_while_it_counts(xen: Cluster, guest: str, book: Book) -> None:
    source, target = xen.nodes[1:3]
    before = count(source, guest)
    with book.case("gnt-instance migrate", "none: a live Xen PVH guest on DRBD") as case:
        ran = xen.ok("instance migrate -f", guest)
        print(ran.out, ran.err)
        counts_past(target, guest, before)
        case.outcome = "the guest counts on, on the other node"
    ((node, status),) = xen.cells("instance list -o pnode,status", guest)
    assert (node, status) == (target.name, "running")
    mirror.until(target, **mirror.WHOLE)
    assert guest not in source.sh("xl list")


@pytest.mark.parametrize("guest", [PV], indirect=True)
def test_a_pv_guest_is_not_moved_where_xen_cannot_follow_it(
    xen: Cluster, guest: str, book: Book
) -> None:
    source = xen.nodes[1]
    with book.case("gnt-instance migrate", "Xen PV guest, Xen without shadow paging") as case:
        ran = xen.gnt("instance migrate -f", guest)
        assert ran.code == 1
        assert "built without shadow paging" in ran.err
        counts_past(source, guest, count(source, guest))
        case.outcome = "refused, the guest counts on where it was"
    mirror.until(source, **mirror.WHOLE)
    assert mirror.state(source)["ro"] == "Primary/Secondary"
