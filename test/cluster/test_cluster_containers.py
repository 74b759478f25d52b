"""Chroots and containers beside fake instances: from gnt-instance add to remove."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_cluster import Cluster, copy_cluster, tool
from needs import needs_root
from waiting import wait_for

from ganeti import constants
from ganeti.base import process
from ganeti.hypervisor import mounts

BUSYBOX = shutil.which("busybox")
pytestmark = [
    pytest.mark.together("mounts"),
    pytest.mark.root,
    needs_root("to mount disks"),
    pytest.mark.skipif(BUSYBOX is None, reason="busybox is not installed"),
]
CREATE = f"""#!/bin/sh
# Fills the first disk with a shell, and with what starts and stops the instance.
set -eu
PATH=$PATH:/usr/sbin:/sbin
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
for directory in bin sbin dev proc sys tmp; do mkdir "$tree/$directory"; done
mknod -m 666 "$tree/dev/null" c 1 3
cp {BUSYBOX} "$tree/bin/busybox"
for name in sh sleep kill cat echo; do ln -s busybox "$tree/bin/$name"; done
cat > "$tree/ganeti-chroot" <<'end'
#!/bin/sh
echo "$1" >> /calls
[ "$1" = stop ] || sleep 1000 &
end
cat > "$tree/sbin/init" <<'end'
#!/bin/sh
trap 'exit 0' PWR
echo "start" >> /calls
while :; do sleep 0.1; done
end
chmod +x "$tree/ganeti-chroot" "$tree/sbin/init"
mkfs.ext4 -q -F -O ^has_journal -d "$tree" "$DISK_0_PATH"
"""
NODE = "node2"


@pytest.fixture(scope="module")
def mixed_cluster() -> Iterator[Cluster]:
    with copy_cluster(2) as made:
        for node in ("node1", "node2"):
            _install_os(made.paths(node).os_search_path[1] / "tree")
        made.ok("cluster modify --enabled-hypervisors", "fake,chroot,lxc")
        yield made
    assert mounts.tree(made.directory, mounts.read()) == []


def _install_os(directory: Path) -> None:
    directory.mkdir(parents=True)
    for name in ("create", "export", "import", "rename"):
        script = directory / name
        script.write_text(CREATE if name == "create" else "#!/bin/sh\nexit 0\n")
        script.chmod(0o755)
    (directory / "ganeti_api_version").write_text("15\n")


def state(cluster: Cluster, name: str) -> list[str]:
    (row,) = cluster.cells("instance list -o status,hypervisor,oper_ram,oper_vcpus", name)
    return row


def calls(cluster: Cluster, hypervisor: str, name: str) -> list[str]:
    """What was run in the file system of a running instance."""
    paths = cluster.paths(NODE)
    root = paths.chroot / name if hypervisor == "chroot" else paths.lxc / name / "rootfs"
    return (root / "calls").read_text().split()


@pytest.mark.parametrize(
    ("hypervisor", "after_reboot"),
    [("chroot", ["start", "stop", "start"]), ("lxc", ["start", "start"])],
)
def test_life_of_an_instance(
    mixed_cluster: Cluster, hypervisor: str, after_reboot: list[str]
) -> None:
    if hypervisor == "lxc" and shutil.which("lxc-start") is None:
        pytest.skip("LXC is not installed")
    name = f"{hypervisor}1.example.com"
    added = mixed_cluster.gnt(
        f"instance add -n {NODE} -o tree -t file --disk 0:size=16M --no-nics -B memory=32M,vcpus=1",
        "-H",
        hypervisor,
        name,
    )
    assert added.code == 0, added.err
    assert state(mixed_cluster, name) == ["running", hypervisor, "32", "1"]
    shown = mixed_cluster.ok("instance console --show-cmd", name).out
    assert f"{NODE}.example.com" in shown
    assert ("chroot " if hypervisor == "chroot" else "lxc-console ") in shown

    def wait_for_starts(count: int) -> list[str]:
        """What ran in the guest; it may run before its first process has written anything."""
        found: list[str] = []

        def has_enough() -> bool:
            found[:] = calls(mixed_cluster, hypervisor, name)
            return found.count("start") >= count

        wait_for(has_enough, f"start number {count} of the guest")
        return found

    wait_for_starts(1)
    mixed_cluster.ok("instance reboot --type=soft", name)
    assert wait_for_starts(2) == after_reboot
    mixed_cluster.ok("instance reboot --type=hard", name)
    wait_for_starts(3)
    migrated = mixed_cluster.gnt("instance migrate --force", name)
    assert migrated.code != 0
    assert state(mixed_cluster, name)[0] == "running"
    mixed_cluster.ok("instance shutdown --timeout=10", name)
    assert state(mixed_cluster, name)[0] == "ADMIN_down"
    mixed_cluster.ok("instance startup", name)
    assert wait_for_starts(4).count("start") == 4
    mixed_cluster.ok("instance remove --force --shutdown-timeout=10", name)
    assert mixed_cluster.cells("instance list -o name") == []
    assert mounts.tree(mixed_cluster.root(NODE), mounts.read()) == []


def test_a_container_whose_first_process_was_killed_runs_again(mixed_cluster: Cluster) -> None:
    if shutil.which("lxc-start") is None:
        pytest.skip("LXC is not installed")
    name = "lxc2.example.com"
    words = ["-o", "tree", "-t", "file", "--disk", "0:size=16M", "--no-nics", "-H", "lxc"]
    mixed_cluster.ok(f"instance add -n {NODE}", *words, name)
    wait_for(lambda: _calls_or_none(mixed_cluster, name) == ["start"], "the container begins")
    lxcpath = str(mixed_cluster.paths(NODE).lxc)
    asked = process.run(["lxc-info", "-P", lxcpath, "-n", name, "-p", "-H"], timeout=30)
    os.kill(int(asked.stdout), signal.SIGKILL)
    wait_for(lambda: len(_calls_or_none(mixed_cluster, name)) == 2, "it begins again", 60)
    [job] = [
        row[0]
        for row in mixed_cluster.cells("job list -o id,summary")
        if f"STARTUP({name})" in row[1]
    ]
    mixed_cluster.ok("job watch", job)
    assert state(mixed_cluster, name)[0] == "running"
    mixed_cluster.ok("instance remove --force --shutdown-timeout=10", name)


def _calls_or_none(cluster: Cluster, name: str) -> list[str]:
    """What ran in a container, none while its file system is not mounted."""
    try:
        return calls(cluster, "lxc", name)
    except FileNotFoundError:
        return []


def test_restarted_node_daemon_and_verify(mixed_cluster: Cluster) -> None:
    """A chroot and a fake instance on one node go on; the cluster has nothing to complain of."""
    assert mixed_cluster.add("fake1.example.com").code == 0
    words = ["-o", "tree", "-t", "file", "--disk", "0:size=16M", "--no-nics", "-H", "chroot"]
    mixed_cluster.ok(f"instance add -n {NODE}", *words, "chroot2.example.com")
    pid = mixed_cluster.pid(constants.NODED, NODE)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert process.wait_exit(pid, 10)
    assert tool("start-node", mixed_cluster.directory, NODE).code == 0
    mixed_cluster.ok("cluster verify")
    infos = mixed_cluster.ok("instance info", "chroot2.example.com").out
    assert "init_script: default (/ganeti-chroot)" in infos
    assert mixed_cluster.cells("instance list -o name,status,hypervisor") == [
        ["chroot2.example.com", "running", "chroot"],
        ["fake1.example.com", "running", "fake"],
    ]
    mixed_cluster.ok("instance remove --force", "fake1.example.com")


def test_what_cannot_be_is_refused_with_its_reason(mixed_cluster: Cluster) -> None:
    words = ["-o", "tree", "-t", "file", "--disk", "0:size=16M", "--no-nics"]
    for hypervisor, text in (
        ("chroot:init_script=start", "init_script"),
        ("chroot:init_script=/a/../b", "/a/../b"),
        ("chroot:memory=5", "memory"),
        ("lxc:devices=all", "devices"),
        ("lxc:extra_cgroups=nosuch", "nosuch"),
    ):
        ran = mixed_cluster.gnt(
            f"instance add -n {NODE} -H {hypervisor}", *words, "bad.example.com"
        )
        assert ran.code != 0
        assert text in ran.err
    ran = mixed_cluster.gnt(
        f"instance add -n {NODE} -H chroot -o noop -t file --disk 0:size=4M --no-nics",
        "empty.example.com",
    )
    assert "has the OS definition made a file system on disk 0?" in ran.err
    mixed_cluster.gnt("instance remove --force", "empty.example.com")
    assert mixed_cluster.cells("instance list -o name") == [["chroot2.example.com"]]


def test_killed_node_and_end_of_the_cluster(mixed_cluster: Cluster) -> None:
    """Guests go with their node, also when the cluster is torn down around them."""
    assert tool("kill-node", mixed_cluster.directory, NODE).code == 0
    assert mounts.tree(mixed_cluster.root(NODE), mounts.read()) == []
    assert tool("start-node", mixed_cluster.directory, NODE).code == 0
    assert state(mixed_cluster, "chroot2.example.com")[0] == "ERROR_down"
    mixed_cluster.ok("instance startup", "chroot2.example.com")
    assert calls(mixed_cluster, "chroot", "chroot2.example.com") == ["start", "start"]
