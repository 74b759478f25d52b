"""Instances on Xen: two of the nodes boot into it, with mirrored disks below the guests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from lab import mirror, sabotage
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
    # A guest that came from elsewhere continues in the log of its arrival until it boots anew.
    logs = f"/var/log/xen/guest-{name}.log /var/log/xen/guest-{name}--incoming.log"
    log = node.sh(f"cat $(ls -tr {logs} 2>/dev/null) </dev/null || :")
    said = re.findall(r"BEAT (\d+)\r?\n", log)
    return int(said[-1]) if said else -1


def wait_for_count(node: Node, name: str, number: int) -> None:
    wait_for(f"{name} past {number}", lambda: count(node, name) > number, BOOT_LIMIT, 0.5)


def check_place(xen: Cluster, guest: str, here: Node, away: Node) -> None:
    """After a move: the record, the mirror and both nodes agree where the guest is."""
    ((node, status),) = xen.cells("instance list -o pnode,status", guest)
    assert (node, status) == (here.name, "running")
    mirror.await_state(here, **mirror.WHOLE)
    assert guest not in away.sh("xl list")


@pytest.fixture(scope="module")
def xen(holder: Holder) -> Iterator[Cluster]:
    """The cluster with its second and third node in Xen; the next module gets a new one."""
    try:
        cluster = holder.get()
    except Unavailable as err:
        pytest.skip(str(err))
    cluster.boot_into_xen(cluster.nodes[1:])
    line = "cluster modify --enabled-hypervisors=fake,kvm,xen-pvm"
    cluster.ok(line, "-H", "xen-pvm:kernel_path=/opt/tiny/vmlinux")
    yield cluster
    holder.drop()


@pytest.fixture
def guest(xen: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A counting guest of the kind that is requested, on the second node, mirrored on the third."""
    name: str = request.param
    second, third = xen.nodes[1:3]
    xen.ok(
        "instance add -t drbd -o noop --no-nics -B minmem=128,maxmem=128 --disk 0:size=16M",
        "-H",
        _KINDS[name],
        "-n",
        f"{second.name}:{third.name}",
        name,
    )
    wait_for_count(second, name, 0)
    yield name
    xen.ok("instance remove -f", name)


@pytest.mark.parametrize("guest", [PVH], indirect=True)
def test_a_guest_is_moved_while_it_counts(xen: Cluster, guest: str, book: Book) -> None:
    source, target = xen.nodes[1:3]
    before = count(source, guest)
    with book.case("gnt-instance migrate", "none: a live Xen PVH guest on DRBD") as case:
        xen.ok("instance migrate -f", guest, limit=600.0)
        wait_for_count(target, guest, before)
        case.outcome = "the guest counts on, on the other node"
    check_place(xen, guest, target, source)


@pytest.mark.parametrize("guest", [PV], indirect=True)
def test_a_pv_guest_is_saved_and_restored_on_the_other_node(
    xen: Cluster, guest: str, book: Book
) -> None:
    source, target = xen.nodes[1:3]
    with book.case("gnt-instance migrate", "Xen PV guest, Xen without shadow paging") as case:
        ran = xen.gnt("instance migrate -f", guest)
        assert ran.code == 1
        assert "built without shadow paging" in ran.err
        wait_for_count(source, guest, count(source, guest))
        case.outcome = "refused, the guest counts on where it was"
        case.recovery = "instance migrate --non-live"
    mirror.await_state(source, **mirror.WHOLE)
    assert mirror.state(source)["ro"] == "Primary/Secondary"
    with book.case(
        "gnt-instance migrate --non-live", "connection of a Xen PV guest lost in the middle"
    ) as case:
        ran = xen.ok("instance migrate -f --non-live --submit", guest)
        wait_for("a guest that leaves", lambda: f"{guest}--leaving" in source.sh("xl list"), 120.0)
        target.sh("while ! pkill -KILL -x socat; do sleep 0.1; done", limit=60.0)
        watched = xen.gnt("job watch", (ran.out + ran.err).split()[-1], limit=400.0)
        assert watched.code == 1
        assert f"it runs on node {source.name}" in watched.out + watched.err
        wait_for_count(source, guest, count(source, guest))
        assert f"{guest}--" not in source.sh("xl list") + target.sh("xl list")
        case.outcome = "the job fails; the guest counts on where it was"
        case.recovery = "none needed"
    with book.case("gnt-instance migrate --non-live", "none: a Xen PV guest on DRBD") as case:
        before = count(source, guest)
        xen.ok("instance migrate -f --non-live", guest, limit=600.0)
        wait_for_count(target, guest, before)
        case.outcome = "saved, restored on the other node, and counts on"
    check_place(xen, guest, target, source)
    counted = count(target, guest)
    xen.ok("instance reboot", guest)
    wait_for("a new count", lambda: 0 < count(target, guest) < counted, BOOT_LIMIT, 0.5)
    with book.case("gnt-instance shutdown", "xl hangs") as case:
        sabotage.stop_at(target, "xl", "list", done=False)
        ran = xen.gnt("instance shutdown", guest, limit=500.0)
        assert ran.code == 1
        assert "timed out" in ran.err, ran.err
        sabotage.let_go(target, "xl")
        wait_for_count(target, guest, count(target, guest))
        case.outcome = "the job fails when xl does not answer in time; the guest counts on"
        case.recovery = "what makes xl hang taken away"
    xen.ok("instance shutdown", guest)
    assert guest not in target.sh("xl list")
