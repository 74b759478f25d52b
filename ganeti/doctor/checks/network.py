"""Names, addresses, devices, ports, other nodes and their clocks."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from ganeti import constants
from ganeti.base.text import join_names
from ganeti.doctor.facts import Network, Peer, Port, Wish
from ganeti.doctor.findings import Finding, fail, ok, warn
from ganeti.net import interfaces

#: Seconds that clocks may be apart before somebody should look.
_NOTICEABLE = 5.0


def check(facts: Network, wish: Wish) -> Iterator[Finding]:
    yield from names(facts)
    yield from bridges(facts, wish)
    yield from device(facts, wish)
    yield from ports(facts)
    if not facts.ssh:
        yield warn(
            "ssh",
            "nothing listens on port 22, over which gnt-node add and consoles come",
            "apt-get install openssh-server",
        )
    yield from _peers(facts)


def names(facts: Network) -> Iterator[Finding]:
    """The name of this server must lead others to this server."""
    host, address = facts.host, facts.address
    entry = f"{facts.outward or 'ADDRESS'} {host} {host.partition('.')[0]}"
    if address is None:
        yield fail("names", f"this server is called {host}, which has no address", _write(entry))
        return
    if host.partition(".")[0] == "localhost":
        yield fail(
            "names",
            "this server is called localhost, as every server calls itself",
            "hostnamectl set-hostname NAME, and put 'ADDRESS NAME' into DNS or /etc/hosts",
        )
        return
    if not facts.rooted and ipaddress.ip_address(address).is_loopback:
        yield fail(
            "names",
            f"{host} has the address {address}, which leads every server to itself",
            f"in /etc/hosts replace the line of {address} by '{entry}'",
        )
        return
    if not facts.own:
        yield fail(
            "names",
            f"{host} has the address {address}, which no device of this server has",
            f"correct it in DNS or /etc/hosts ('{entry}')",
        )
        return
    if "." not in host:
        yield warn(
            "names",
            f"this server is called {host}, without a domain",
            f"put the full name first in its line of /etc/hosts ({address} {host}.example.com"
            f" {host})",
        )
    elif facts.reverse is None or facts.reverse.lower() != host.lower():
        found = f"is that of {facts.reverse}" if facts.reverse else "has no name"
        yield warn("names", f"the address {address} of {host} {found}", _write(entry))
    else:
        yield ok("names", f"{host} has the address {address}")


def _write(entry: str) -> str:
    return f"put '{entry}' into DNS or /etc/hosts of all nodes"


def bridges(facts: Network, wish: Wish) -> Iterator[Finding]:
    for name in facts.missing_bridges:
        yield fail("bridges", f"bridge {name} is missing", interfaces.bridge_command(name))
    found = [name for name in wish.bridges if name not in facts.missing_bridges]
    if found:
        yield ok("bridges", ", ".join(found))


def device(facts: Network, wish: Wish) -> Iterator[Finding]:
    """The device that is to carry the address of the cluster."""
    if wish.device is None:
        return
    if facts.device_exists:
        yield ok("device", f"{wish.device}, for the address of the cluster")
    else:
        yield fail(
            "device",
            f"this server has no network device {wish.device} for the address of the cluster",
            "ip -brief link shows them; choose one with --master-netdev",
        )


def ports(facts: Network) -> Iterator[Finding]:
    """Ports that somebody else has, with who it is."""
    occupied = [port for port in facts.ports if port.occupied]
    for port in occupied:
        who = f"{port.program} (pid {port.pid})" if port.pid else "an unknown process"
        yield fail(
            "ports",
            f"{port.protocol} port {port.number} of {port.daemon} is held by {who}",
            _free(port),
        )
    if facts.ports and not occupied:
        shown = ", ".join(f"{port.number}/{port.protocol}" for port in facts.ports)
        yield ok("ports", f"{shown} are free or ours")


def _free(port: Port) -> str:
    end = f"end it (kill {port.pid})" if port.pid else f"ss -lnp 'sport = :{port.number}' shows it"
    return f"{end}, or name another port in /etc/services of all nodes ({port.daemon})"


def _peers(facts: Network) -> Iterator[Finding]:
    if not facts.peers:
        return
    for peer in facts.peers:
        if peer.resolved != peer.address:
            found = f"has the address {peer.resolved}" if peer.resolved else "has no address"
            yield warn(
                "nodes",
                f"{peer.name} {found} here, the cluster has {peer.address}",
                f"put '{peer.address} {peer.name}' into DNS or /etc/hosts",
            )
    silent = [peer for peer in facts.peers if peer.problem]
    for peer in silent:
        yield warn(
            "nodes",
            f"the node daemon of {peer.name} does not answer ({peer.problem})",
            f"look there: ssh {peer.name} ganeti-doctor",
        )
    answers = [peer for peer in facts.peers if not peer.problem]
    if answers:
        yield ok("nodes", f"answers of {join_names(peer.name for peer in answers)}")
    yield from _clocks(answers)


def _clocks(peers: list[Peer]) -> Iterator[Finding]:
    known = [(peer, peer.ahead) for peer in peers if peer.ahead is not None]
    for peer, ahead in known:
        if finding := clock(peer.name, ahead):
            yield finding
    if known and all(clock(peer.name, ahead) is None for peer, ahead in known):
        furthest = max(abs(ahead) for _peer, ahead in known)
        yield ok("clock", f"at most {max(1.0, furthest):.0f} s apart from other nodes")


def clock(other: str, ahead: float) -> Finding | None:
    """The problem of the clock when that of another node is so many seconds ahead."""
    if abs(ahead) < _NOTICEABLE:
        return None
    text = f"the clock of {other} is {_time(abs(ahead))} {'ahead' if ahead > 0 else 'behind'}"
    remedy = "set the clock of the wrong one: apt-get install chrony; chronyc makestep"
    level = fail if abs(ahead) > constants.MAX_CLOCK_SKEW else warn
    return level("clock", text, remedy)


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.0f} hours"
