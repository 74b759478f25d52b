"""One story on three bare Debian servers, in the order of the steps; each needs those before it.

Installation, a guest with a console, mirrored guests, daemons and guests that are killed, a new
version, a power cut of all servers, removal. Times are those of an emulated processor.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import story
from lab import debs
from lab.channel import wait_for
from lab.server import DOMAIN, SHARE, Server, Servers, say
from story import GUEST, PATIENCE, WEB

MIRRORED = [f"db{n}.{DOMAIN}" for n in (1, 2, 3)]
GUESTS = [WEB, *MIRRORED]
DAEMONS = ("ganeti-noded", "ganeti-masterd", "ganeti-rapi")
#: Seconds after the last boot in which all guests must run again.
POWER_LIMIT = 120.0


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    yield from story.servers("three", 3)


def running(servers: Servers, guests: list[str], limit: float) -> dict[str, Server]:
    """Where the guests run, as soon as all of them do, and count."""

    def all_of_them() -> dict[str, Server] | None:
        found = servers.guests()
        return found if set(guests) <= set(found) else None

    found: dict[str, Server] = wait_for(f"guests {guests}", all_of_them, limit, 1.0)
    for guest in guests:
        assert story.continues(found[guest], guest)
    return found


def pids(servers: Servers) -> dict[str, int]:
    return {name: pid for server in servers.servers for name, pid in server.guests().items()}


def check_beats(servers: Servers, heard: dict[str, int], what: str) -> None:
    """All guests that had been heard so often continue, and left out no beat since."""
    found = servers.guests()
    for guest, count in heard.items():
        assert story.continues(found[guest], guest)
        numbers = found[guest].beats(guest)[count - 1 :]
        lost = story.list_missing(numbers)
        say(f"{what}: {guest}: {len(numbers)} beats, {len(lost)} missed")
        assert lost == []


def test_from_bare_debian_to_a_guest_with_a_console(servers: Servers) -> None:
    story.check_beats_on(story.make_first_guest(servers))


def test_two_more_servers_and_mirrored_guests(servers: Servers) -> None:
    first, *others = servers.servers
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda server: story.prepare(servers, server), others))
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
    assert story.continues(first, WEB)
    servers.type(first, "systemctl start ganeti.target")
    story.wait_for_master(first)
    assert pids(servers) == before


def test_a_new_release_of_the_package_leaves_guests_alone(servers: Servers) -> None:
    first, before = servers.servers[0], pids(servers)
    heard = len(first.beats(WEB))
    new = debs.make_newer(next(first.share.glob("ganeti_*.deb")), first.share)
    daemons = first.sh("systemctl show -P MainPID ganeti-noded ganeti-masterd")
    servers.type(first, f"apt-get install -y {SHARE}/{new.name}")
    new.unlink()
    assert pids(servers) == before
    assert first.sh("systemctl show -P MainPID ganeti-noded ganeti-masterd") != daemons
    story.wait_for_master(first)
    check_beats(servers, {WEB: heard}, "a new release")


def test_to_the_next_version_and_back_with_guests(servers: Servers) -> None:
    first, before = servers.servers[0], pids(servers)
    heard = {guest: len(server.beats(guest)) for guest, server in servers.guests().items()}
    package = debs.package(version=debs.NEXT)

    def install(server: Server) -> None:
        shutil.copy(package, server.share)
        servers.type(server, f"apt-get install -y {SHARE}/{package.name}")
        (server.share / package.name).unlink()

    with ThreadPoolExecutor() as pool:
        list(pool.map(install, servers.servers))
    for version in (debs.NEXT, debs.NOW):
        servers.type(first, f"gnt-cluster upgrade --to {version}")
        story.wait_for_master(first)
        for server in servers.servers:
            assert server.sh("readlink /etc/ganeti/lib") == f"/usr/lib/ganeti/{version}"
        assert pids(servers) == before
        check_beats(servers, heard, f"after the way to {version}")
    servers.type(first, "gnt-cluster verify")


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
    # Daemons that were killed a moment ago are still starting, and have one processor.
    wait_for("an idle processor", first.is_idle, PATIENCE, 5.0)
    process, count = first.kill(WEB)
    say(f"a killed guest has a process again after {process:.1f} s, and counts after {count:.1f} s")
    assert story.continues(first, WEB)


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
    for server in servers.servers:
        times = sorted(server.boot_times().items(), key=lambda item: item[1])
        say(f"{server.name}: " + ", ".join(f"{what} {at:.1f}" for what, at in times))
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
