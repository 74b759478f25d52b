"""Instances that really run: KVM inside the nodes, on mirrored disks, moved while they count."""

from __future__ import annotations

import re

import pytest
from lab import mirror, sabotage
from lab.channel import wait_for
from lab.cluster import Cluster, Node
from lab.faults import Book

VM = "vm1"
_PARAMS = (
    "kvm:kernel_path=/opt/tiny/vmlinux,initrd_path=/opt/tiny/initrd,root_path=/dev/vda,"
    "kernel_args=console=ttyS0 quiet panic=-1 mitigations=off,serial_console=true,vhost_net=false"
)
_RUN = "/var/run/ganeti/kvm-hypervisor"
_SERIAL = f"{_RUN}/ctrl/{VM}.serial"
#: Seconds in which an instance must count; one boot in some tens hangs and is tried once more.
BOOT_LIMIT = 90.0
#: MiB a second, for moves that must not end, and for those that shall.
SLOW, FAST = 1, 32
#: For the guest's shell: some 50 MiB of memory that are not zero, which takes long to send slowly.
_FILL = "(for i in $(seq 24); do cat /bin/busybox > /tmp/fill$i; done) &"
#: The same: memory is written all the time, slowly enough for a move that ends.
_WRITING_SLOWLY = (
    "(while :; do dd if=/dev/zero of=/tmp/y bs=64k count=4 conv=notrunc; sleep 1; done)"
    " >/dev/null 2>&1 &"
)


def count(node: Node) -> int:
    """The next number that the instance counts on its console within some seconds; -1: none."""
    script = f"timeout 6 socat -u UNIX-CONNECT:{_SERIAL} - | grep -m 1 BEAT || true"
    said = re.findall(r"BEAT (\d+)\r?\n", node.run("bash", "-c", script).out)
    return int(said[-1]) if said else -1


def counts(node: Node) -> int:
    found: int = wait_for("a counting instance", lambda: max(count(node), 0), BOOT_LIMIT)
    return found


def types(node: Node, line: str) -> None:
    """Give a line to the shell in the instance, and wait until it has read it."""
    script = (
        "end=$(mktemp -u);"
        " (cat; until [ -e $end ]; do sleep 0.1; done)"
        f" | timeout 30 socat - UNIX-CONNECT:{_SERIAL}"
        " | { grep -a -m 1 '^TYPED-IN'; touch $end; };"
        " rm -f $end"
    )
    ran = node.ok("bash", "-c", script, stdin=f"{line}\necho TYPED-IN\n")
    assert "TYPED-IN" in ran.out, ran


def boots(cluster: Cluster, node: Node) -> int:
    """The count of an instance that was just started."""
    try:
        return counts(node)
    except Exception:
        cluster.ok("instance reboot -t hard", VM)
        return counts(node)


def runs_on(node: Node) -> bool:
    return node.run("bash", "-c", f"kill -0 $(cat {_RUN}/pid/{VM})").code == 0


def begin_to_move(cluster: Cluster, source: Node) -> str:
    """Begin a migration that takes minutes; gives the number of its job."""
    cluster.ok(f"cluster modify -H kvm:kernel_path=,migration_bandwidth={SLOW}")
    types(source, _FILL)
    ran = cluster.ok("instance migrate -f --submit", VM)
    job = (ran.out + ran.err).split()[-1]
    begun = "memory transfer progress"
    wait_for("a migration", lambda: begun in cluster.gnt("job info", job).out, 150.0, 2.0)
    return job


@pytest.fixture
def vm(cluster: Cluster) -> str:
    """A running instance on the second node, mirrored on the third; the last scenario ends it."""
    second, third = cluster.nodes[1:3]
    if not cluster.cells("instance list -o name"):
        cluster.ok(
            "instance add -t drbd -o noop --no-nics -B minmem=160,maxmem=160 --disk 0:size=16M",
            "-H",
            _PARAMS,
            "-n",
            f"{second.name}:{third.name}",
            VM,
        )
        boots(cluster, second)
    return VM


def test_a_guest_that_ignores_the_power_button_is_ended(
    cluster: Cluster, vm: str, book: Book
) -> None:
    node = cluster.nodes[1]
    with book.case("gnt-instance shutdown --timeout=5", "the KVM guest ignores it") as case:
        types(node, "killall acpid")
        cluster.ok("instance shutdown --timeout=5", vm)
        assert not runs_on(node)
        case.outcome = "ended by force when the time is over"
    cluster.ok("instance startup", vm)


def test_a_qemu_that_hangs(cluster: Cluster, vm: str, book: Book) -> None:
    node = cluster.nodes[1]
    with book.case("gnt-instance migrate", "QEMU hangs (its monitor does not answer)") as case:
        node.sh(f"kill -STOP $(cat {_RUN}/pid/{vm})")
        ran = cluster.gnt("instance migrate -f", vm)
        assert ran.code == 1
        assert "did not answer" in ran.err
        assert f"it runs on node {node.name}" in ran.err
        case.outcome = "given up after ten seconds with a message; the instance is where it was"
    with book.case("gnt-instance shutdown", "QEMU hangs (its monitor does not answer)") as case:
        cluster.gnt("instance shutdown --timeout=5", vm)
        assert cluster.cells("instance list -o status", vm) == [["ADMIN_down"]]
        assert not runs_on(node)
        case.outcome = "killed"
    cluster.ok("instance startup", vm)
    boots(cluster, node)


def test_the_link_is_cut_during_a_migration(cluster: Cluster, vm: str, book: Book) -> None:
    source, target = cluster.nodes[1:3]
    mirror.await_state(source, **mirror.WHOLE)
    with book.case("gnt-instance migrate", "network of the target cut in the middle") as case:
        job = begin_to_move(cluster, source)
        target.machine.link(up=False)
        ran = cluster.gnt("job watch", job, limit=400.0)
        assert ran.code == 1
        assert "nothing was sent for 60 s" in ran.out + ran.err
        assert runs_on(source)
        # A guest that works writes to its disk, too.
        mirror.write(source, "meanwhile", offset=64)
        target.machine.link(up=True)
        cleanup = "instance migrate --cleanup -f"
        wait_for("the target", lambda: not cluster.gnt(cleanup, vm).code, 200.0)
        assert runs_on(source)
        assert not runs_on(target)
        mirror.await_state(source, **mirror.WHOLE)
        case.outcome = "given up after a minute of silence; the instance continues where it was"
        case.recovery = "network back, instance migrate --cleanup"


def test_the_node_daemon_dies_during_a_migration(cluster: Cluster, vm: str, book: Book) -> None:
    source, target = cluster.nodes[1:3]
    with book.case(
        "gnt-instance migrate", "node daemon of the source killed in the middle"
    ) as case:
        job = begin_to_move(cluster, source)
        sabotage.kill_daemon(source)
        ran = cluster.gnt("job watch", job, limit=400.0)
        assert ran.code == 1
        source.start("ganeti-noded")
        assert "a migration of it did not end" in cluster.gnt("cluster verify").out
        cluster.ok("instance migrate --cleanup -f", vm)
        assert [runs_on(source), runs_on(target)] == [True, False]
        mirror.await_state(source, **mirror.WHOLE)
        case.outcome = "the job fails and tells what to do; the instance runs on one node"
        case.recovery = "daemon started again, instance migrate --cleanup"
    cluster.ok("cluster verify")
    types(source, "rm /tmp/fill*")


def test_a_running_instance_is_moved_and_survives_its_node(
    cluster: Cluster, vm: str, book: Book
) -> None:
    source, target = cluster.nodes[1:3]
    cluster.ok(f"cluster modify -H kvm:kernel_path=,migration_bandwidth={FAST}")
    types(source, _WRITING_SLOWLY)
    before = counts(source)
    with book.case("gnt-instance migrate", "none: a live KVM instance on DRBD") as case:
        ran = cluster.ok("instance migrate -f", vm)
        took = re.search(r"memory transferred: (.+)", ran.out + ran.err)
        assert took is not None, ran
        assert counts(target) > before
        case.outcome = f"the instance counts on, on the other node ({took[1]})"
    ((node, status),) = cluster.cells("instance list -o pnode,status", vm)
    assert (node, status) == (target.name, "running")
    mirror.await_state(target, **mirror.WHOLE)
    assert mirror.state(target)["ro"] == "Primary/Secondary"
    assert not runs_on(source)
    with book.case("running KVM instance on DRBD", "power cut of its node") as case:
        target.power_cut()
        mirror.await_state(source, cs="WFConnection")
        cluster.ok("node modify --offline=yes", target.name)
        cluster.ok("instance failover -f --ignore-consistency", vm)
        counts(source)
        case.outcome = "starts on the secondary node"
        case.recovery = "node modify --offline=no, instance activate-disks"
        target.power_on()
        cluster.ok("node modify --offline=no", target.name)
        cluster.ok("instance activate-disks", vm)
        mirror.await_state(source, **mirror.WHOLE)
    assert mirror.checksum(source) == mirror.checksum(target)
    cluster.ok("instance remove -f", vm)
