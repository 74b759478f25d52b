"""One story on three bare Debian servers, in the order of the steps; each needs those before it.

Installation, a guest with a console, mirrored guests, daemons and guests that are killed, a new
version, a power cut of all servers, removal. Times are those of an emulated processor.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from lab.channel import wait_for
from lab.debs import newer
from lab.server import CLUSTER, DOMAIN, SHARE, Server, Servers, kept, say

WEB = f"web1.{DOMAIN}"
MIRRORED = [f"db{n}.{DOMAIN}" for n in (1, 2, 3)]
GUESTS = [WEB, *MIRRORED]
DAEMONS = ("ganeti-noded", "ganeti-masterd", "ganeti-rapi")
#: Seconds after the last boot in which all guests must run again.
POWER_LIMIT = 120.0
#: Seconds for daemons and guests on their way; an emulated processor may have to share its own.
PATIENCE = 900.0
INSTALL = (
    f"apt-get install -y --no-install-recommends {SHARE}/ganeti_*.deb"
    " drbd-utils lvm2 qemu-system-x86 qemu-utils"
)
LOAD_DRBD = (
    "echo options drbd minor_count=128 usermode_helper=/bin/true > /etc/modprobe.d/drbd.conf;"
    " echo drbd >> /etc/modules; modprobe drbd"
)
INIT = (
    "gnt-cluster init --vg-name xenvg --enabled-disk-templates drbd,plain,file"
    f" --master-netdev br0 --nic-parameters link=br0 -H kvm:kernel_path= {CLUSTER}"
)
GUEST = "-o bootsector+beat --disk 0:size=1G -B memory=128M"


@pytest.fixture(autouse=True)
def each_step_once(request: pytest.FixtureRequest, servers: Servers) -> Iterator[None]:
    """None after a failed one, none that an earlier run has done; its servers are kept."""
    name, failed = request.node.name, request.session.testsfailed
    if failed:
        pytest.skip("an earlier step failed")
    if name in servers.done:
        pytest.skip("an earlier run has done it")
    yield
    state = kept()
    if state is not None and request.session.testsfailed == failed:
        servers.save(state, name)


def prepare(servers: Servers, server: Server) -> None:
    """What every server needs, whatever it becomes."""
    for line in (INSTALL, LOAD_DRBD, "vgcreate -q xenvg /dev/vdb"):
        servers.type(server, line)


def beats(server: Server, guest: str) -> bool:
    """Whether a guest continues counting."""
    before = server.beats(guest)
    return bool(wait_for(f"beats of {guest}", lambda: server.beats(guest) > before, PATIENCE))


def running(servers: Servers, guests: list[str], limit: float) -> dict[str, Server]:
    """Where the guests run, as soon as all of them do, and count."""

    def all_of_them() -> dict[str, Server] | None:
        found = servers.guests()
        return found if set(guests) <= set(found) else None

    found: dict[str, Server] = wait_for(f"guests {guests}", all_of_them, limit, 1.0)
    for guest in guests:
        assert beats(found[guest], guest)
    return found


def pids(servers: Servers) -> dict[str, int]:
    return {name: pid for server in servers.servers for name, pid in server.guests().items()}


def test_from_bare_debian_to_a_guest_with_a_console(servers: Servers) -> None:
    first = servers.servers[0]
    prepare(servers, first)
    servers.type(first, INIT)
    servers.type(first, f"gnt-instance add -t plain {GUEST} {WEB}")
    # A person has a terminal; the console ends when its input does.
    shown = servers.type(
        first, f"timeout 20 script -qc 'gnt-instance console {WEB}' /dev/null || [ $? = 124 ]"
    )
    assert re.search(r"^beat \d+\r?$", shown, re.M), shown
    servers.summary("a guest with a console")


def test_two_more_servers_and_mirrored_guests(servers: Servers) -> None:
    first, *others = servers.servers
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda server: prepare(servers, server), others))
    for server in others:
        servers.type(first, f"gnt-node add --no-ssh-key-check {server.name}")
    names = [server.name for server in servers.servers]
    for guest, node, second in zip(MIRRORED, names, [*names[1:], names[0]]):
        servers.type(
            first, f"gnt-instance add -t drbd -n {node}:{second} --no-wait-for-sync {GUEST} {guest}"
        )
    found = running(servers, GUESTS, PATIENCE)
    assert [found[guest].name for guest in MIRRORED] == names
    servers.type(first, "gnt-cluster verify")
    servers.summary("three servers with mirrored guests")


def test_only_the_master_has_daemons_of_a_master(servers: Servers) -> None:
    first, *others = servers.servers
    for server in servers.servers:
        assert server.run("systemctl", "--failed", "--no-legend", "ganeti*").out == ""
    for daemon in DAEMONS:
        assert first.run("systemctl", "is-active", daemon).code == 0
    for server in others:
        states = [server.run("systemctl", "is-active", daemon).out.strip() for daemon in DAEMONS]
        assert states == ["active", "inactive", "inactive"]


def test_guests_run_on_whatever_becomes_of_the_daemons(servers: Servers) -> None:
    first, before = servers.servers[0], pids(servers)
    scopes = first.sh("systemctl list-units --no-legend --plain 'ganeti-guest-*.scope'")
    assert WEB in scopes
    servers.type(first, "systemctl restart ganeti-noded")
    servers.type(first, "systemctl stop ganeti.target")
    # Exit code 0: one of them is active, or on its way.
    wait_for("their end", lambda: first.run("systemctl", "is-active", *DAEMONS).code, PATIENCE)
    assert pids(servers) == before
    assert beats(first, WEB)
    servers.type(first, "systemctl start ganeti.target")
    wait_for("the master", lambda: first.run("gnt-cluster", "master-ping").code == 0, PATIENCE)
    assert pids(servers) == before


def test_a_new_version_of_the_package_leaves_guests_alone(servers: Servers) -> None:
    first, before = servers.servers[0], pids(servers)
    new = newer(next(first.share.glob("ganeti_*.deb")), first.share)
    daemons = first.sh("systemctl show -P MainPID ganeti-noded ganeti-masterd")
    servers.type(first, f"apt-get install -y {SHARE}/{new.name}")
    new.unlink()
    assert pids(servers) == before
    assert first.sh("systemctl show -P MainPID ganeti-noded ganeti-masterd") != daemons
    wait_for("the master", lambda: first.run("gnt-cluster", "master-ping").code == 0, PATIENCE)
    assert beats(first, WEB)


@pytest.mark.parametrize("daemon", DAEMONS)
def test_a_killed_daemon_comes_back(servers: Servers, daemon: str) -> None:
    first = servers.servers[0]
    wait_for(daemon, lambda: first.run("systemctl", "is-active", daemon).code == 0, PATIENCE)
    pid = first.sh(f"systemctl show -P MainPID {daemon}")
    first.sh(f"kill -9 {pid}")
    begin = time.monotonic()

    def is_back() -> bool:
        state = first.sh(f"systemctl show -P MainPID -P ActiveState {daemon}").split()
        return "active" in state and pid not in state and "0" not in state

    wait_for(daemon, is_back, PATIENCE)
    say(f"{daemon} is back after {time.monotonic() - begin:.1f} s")


def test_a_killed_guest_comes_back(servers: Servers) -> None:
    first = servers.servers[0]
    first.sh(f"kill -9 {first.guests()[WEB]}")
    begin = time.monotonic()
    running(servers, [WEB], PATIENCE)
    say(f"a killed guest is back after {time.monotonic() - begin:.1f} s")


def test_after_a_power_cut_of_all_servers_all_is_back_by_itself(servers: Servers) -> None:
    for server in servers.servers:
        server.sh("sync")
    servers.cut()
    begin = time.monotonic()
    servers.boot()
    booted = time.monotonic()
    say(f"the last server has booted after {booted - begin:.1f} s")
    running(servers, GUESTS, PATIENCE)
    seconds = time.monotonic() - booted
    say(f"all guests run and count {seconds:.1f} s after the last boot")
    servers.type(servers.servers[0], "gnt-cluster verify")
    assert seconds <= POWER_LIMIT


def test_removing_the_package_leaves_guests_and_data(servers: Servers) -> None:
    last, before = servers.servers[-1], pids(servers)
    servers.type(last, "apt-get remove -y ganeti")
    assert pids(servers) == before
    assert last.run("ls", "/usr/sbin/gnt-cluster").code != 0
    assert last.run("test", "-e", "/var/lib/ganeti/config.data").code == 0
    purged = servers.type(last, "apt-get purge -y ganeti 2>&1")
    assert "/var/lib/ganeti is kept" in purged
    servers.type(last, "rm -r /var/lib/ganeti; dpkg -l ganeti | grep -c '^[ir]' || true")
    assert pids(servers) == before
    servers.summary("the whole story")
