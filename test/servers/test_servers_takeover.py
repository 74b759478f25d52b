"""One story on a bare Debian server, in the order of the steps; each needs those before it.

Debian's Ganeti 3.0.2 makes a cluster with two guests that count on their consoles. The cluster
becomes ours, goes back, and becomes ours again. No guest may miss a beat.
"""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import story
from lab.channel import wait_for
from lab.place import REPOSITORY
from lab.server import CLUSTER, DOMAIN, SHARE, Server, Servers, say

NODE = f"node1.{DOMAIN}"
PLAIN, FILED, DOWN = (f"{name}.{DOMAIN}" for name in ("web1", "file1", "down1"))
GUESTS = (PLAIN, FILED)
#: Where the package is unpacked before it is installed.
NEW = "/root/ganeti-new"
EARLY = (
    f"PYTHONPATH=$(echo {NEW}/usr/lib/ganeti/*/venv/lib/python3*/site-packages)"
    " /usr/bin/python3 -m ganeti.offline.takeover"
)
PATIENCE = 1200.0
OLD_INIT = (
    "gnt-cluster init --vg-name xenvg --enabled-disk-templates plain,file --master-netdev br0"
    " --nic-parameters link=br0 --enabled-hypervisors=kvm -H kvm:kernel_path=,initrd_path="
    f" {CLUSTER}"
)
ADD = f"gnt-instance add --no-ip-check --no-name-check -B memory=128M -n {NODE}"


#: Debian's own packages, at hand on the disk of the server.
OLD = ("ganeti", "ganeti-3.0", "ganeti-haskell-3.0", "ganeti-htools-3.0", "cron")


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    for made in story.servers("takeover", 1, more=OLD, disks=[24576]):
        share = made.servers[0].share
        shutil.copy(Path(__file__).with_name("listener.py"), share)
        shutil.copytree(REPOSITORY / "os/bootsector", share / "bootsector")
        yield made


def pids(server: Server) -> dict[str, int]:
    found = {}
    for name in GUESTS:
        path = f"/var/run/ganeti/kvm-hypervisor/pid/{name}"
        found[name] = int(server.sh(f"cat {path}"))
        server.sh(f"test -d /proc/{found[name]}")
    return found


def beats(server: Server, guest: str) -> list[tuple[float, int]]:
    """Times and numbers of all beats that the listener heard."""
    lines = server.sh(f"cat /root/beats-{guest}").splitlines()
    found = []
    for line in lines:
        match = re.match(r"([0-9.]+) beat ([0-9]+)", line)
        if match:
            found.append((float(match[1]), int(match[2])))
    return found


def wait_until_beats_exceed(server: Server, guest: str, number: int) -> None:
    def beyond() -> bool:
        heard = beats(server, guest)
        return bool(heard) and heard[-1][1] > number

    wait_for(f"beats of {guest}", beyond, PATIENCE)


def check_beats(server: Server, what: str) -> None:
    """No number is missing, and each guest continues."""
    for guest in GUESTS:
        wait_until_beats_exceed(server, guest, beats(server, guest)[-1][1])
        heard = beats(server, guest)
        numbers = [number for _, number in heard]
        missing = story.list_missing(numbers)
        times = [moment for moment, _ in heard]
        pause = max(after - before for before, after in itertools.pairwise(times))
        say(f"{what}: {guest}: {len(numbers)} beats, {len(missing)} missed, pause {pause:.1f} s")
        assert missing == []


def test_debians_ganeti_runs_two_guests(servers: Servers) -> None:
    server = servers.servers[0]
    for line in (
        "apt-get install -y --no-install-recommends ganeti qemu-system-x86 qemu-utils lvm2 socat"
        " cron",
        "vgcreate -q xenvg /dev/vdb",
        "mkdir -p /srv/ganeti/os /srv/ganeti/file-storage",
        f"cp -r {SHARE}/bootsector /srv/ganeti/os",
        "echo /srv/ganeti/file-storage > /etc/ganeti/file-storage-paths",
        # Its watcher, every five minutes, starts daemons in the middle of a slow init, which fails.
        "systemctl stop cron",
        OLD_INIT,
        "systemctl start cron",
        "gnt-network add --network=192.0.2.0/24 lan",
        "gnt-network connect --nic-parameters mode=bridged,link=br0 lan",
        "gnt-cluster add-tags prod",
        f"{ADD} -t plain --disk 0:size=1G --net 0:ip=pool,network=lan -o bootsector+beat {PLAIN}",
        f"{ADD} -t file --disk 0:size=1G --disk 1:size=1G -o bootsector+beat {FILED}",
        f"{ADD} -t plain --disk 0:size=1G --no-start --net 0:link=br0 -o bootsector+default {DOWN}",
    ):
        servers.type(server, line)
    for guest in GUESTS:
        socket = f"/var/run/ganeti/kvm-hypervisor/ctrl/{guest}.serial"
        heard = f"/root/beats-{guest}"
        server.sh(
            f"touch {heard}; systemd-run --quiet python3 {SHARE}/listener.py {socket} {heard}"
        )
        wait_until_beats_exceed(server, guest, -1)
    check_beats(server, "under 3.0.2")


def test_check_changes_nothing_and_finds_no_obstacle(servers: Servers) -> None:
    server = servers.servers[0]
    servers.type(server, f"dpkg-deb -x {SHARE}/ganeti_*.deb {NEW}")
    sums = "find /var/lib/ganeti /etc/ganeti -type f | sort | xargs sha256sum"
    before = server.sh(sums)
    shown = servers.type(server, f"{EARLY} check -v")
    say(shown)
    assert "Nothing stands in the way" in shown
    assert f"instance {PLAIN}: process" in shown
    assert server.sh(sums) == before


def take(servers: Servers, server: Server) -> None:
    before = pids(server)
    say(servers.type(server, f"{EARLY} prepare --force"))
    servers.type(server, f"apt-get install -y --no-install-recommends {SHARE}/ganeti_*.deb")
    say(servers.type(server, "ganeti-takeover run --force"))
    story.wait_for_master(server)
    assert pids(server) == before


def test_the_cluster_becomes_ours_and_no_beat_is_missed(servers: Servers) -> None:
    server = servers.servers[0]
    take(servers, server)
    check_beats(server, "after the takeover")
    shown = servers.type(server, "gnt-instance list --no-headers --separator=: -o name,status")
    assert set(shown.split()) == {f"{PLAIN}:running", f"{FILED}:running", f"{DOWN}:ADMIN_down"}
    servers.type(server, "gnt-cluster verify")
    assert "INSTANCE_CREATE" in servers.type(server, "gnt-job list")
    assert "lan" in servers.type(server, "gnt-network list")
    assert "prod" in servers.type(server, "gnt-cluster list-tags")
    scopes = server.sh("systemctl list-units --no-legend --plain 'ganeti-guest-*.scope'")
    assert PLAIN in scopes


def test_what_an_adopted_guest_cannot_do_is_refused(servers: Servers) -> None:
    server, before = servers.servers[0], pids(servers.servers[0])
    ran = servers.attempt(server, f"gnt-instance modify --hotplug --disk add:size=8M {FILED}")
    assert ran.code != 0
    assert "was started by Ganeti 3.0.2" in ran.out + ran.err
    assert pids(server) == before


def test_the_old_one_comes_back_and_no_beat_is_missed(servers: Servers) -> None:
    server, before = servers.servers[0], pids(servers.servers[0])
    said = servers.type(server, "ganeti-takeover back --force")
    say(said)
    (install,) = [line.strip() for line in said.splitlines() if "apt-get install" in line]
    servers.type(server, f"{install} -y --no-install-recommends")
    story.wait_for_master(server)
    assert pids(server) == before
    check_beats(server, "after the way back")
    shown = servers.type(server, "gnt-instance list --no-headers --separator=: -o name,status")
    assert set(shown.split()) == {f"{PLAIN}:running", f"{FILED}:running", f"{DOWN}:ADMIN_down"}


def test_once_more_and_a_guest_is_restarted(servers: Servers) -> None:
    server = servers.servers[0]
    take(servers, server)
    check_beats(server, "after the second takeover")
    before = pids(server)
    servers.type(server, f"gnt-instance reboot -t hard --shutdown-timeout=5 {PLAIN}")
    assert pids(server)[PLAIN] != before[PLAIN]
    ran = servers.attempt(server, "ganeti-takeover back --force")
    assert ran.code == 1
    assert f"instance {PLAIN} was started by this software" in ran.out
    servers.summary("the whole story")
