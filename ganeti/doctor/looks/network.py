"""Names, addresses, devices, ports, other nodes and their clocks."""

from __future__ import annotations

import argparse
import contextlib
import socket
from collections.abc import Iterator

from ganeti import constants, errors, paths
from ganeti.base import daemon, services
from ganeti.doctor.facts import Network, Peer, Port, Wish
from ganeti.doctor.looks import sockets
from ganeti.model import ssconf_keys
from ganeti.net import interfaces, probe, resolve
from ganeti.paths import Paths

_SSH = 22


def read(where: Paths, wish: Wish, *, ask_others: bool = True) -> Network:
    """Blocks for the system's resolver; with ``ask_others`` some seconds for nodes that are off."""
    host = paths.hostname()
    address = _address(host)
    return Network(
        host=host,
        address=address,
        own=address is not None and interfaces.has_address(address),
        reverse=None if address is None else _reverse(address),
        outward=interfaces.outward_address(),
        rooted=paths.is_rooted(),
        missing_bridges=tuple(interfaces.find_missing_bridges(wish.bridges)),
        device_exists=wish.device is None or interfaces.exists(wish.device),
        ports=() if address is None else tuple(_ports(where, address)),
        ssh=paths.is_rooted() or not probe.find_unreachable([probe.Target("127.0.0.1", _SSH)]),
        peers=tuple(_peers(where, host)) if ask_others else (),
    )


def _address(name: str) -> str | None:
    try:
        return resolve.address(name)
    except errors.ResolverError:
        return None


def _reverse(address: str) -> str | None:
    if paths.is_rooted():
        return resolve.reverse(address)
    with contextlib.suppress(OSError):
        return socket.gethostbyaddr(address)[0]
    return None


def _ports(where: Paths, address: str) -> Iterator[Port]:
    """Ports of the daemons; held ones only count when no daemon of this node has them."""
    listening = sockets.listening()
    for service in services.ALL.values():
        if service.name not in constants.DEFAULT_PORTS:
            continue
        number = resolve.port(service.name)
        protocol = "udp" if service.name in constants.UDP_SERVICES else "tcp"
        own = address if paths.is_rooted() else _bind(service, where)
        holder = next(
            (
                each
                for each in listening
                if each.protocol == protocol
                and each.port == number
                and sockets.overlaps(each.address, own)
            ),
            None,
        )
        if holder is None:
            yield Port(service.name, number, protocol)
            continue
        pid = sockets.owner(holder.inode)
        own_pid = daemon.running_pid(where.pid_file(service.name))
        is_taken = pid is None or (pid != own_pid and not _is_starting(pid, service))
        program = "" if pid is None else sockets.program(pid)
        yield Port(service.name, number, protocol, pid if is_taken else None, program, is_taken)


def _bind(service: services.Service, where: Paths) -> str | None:
    """The address on which a daemon listens by its options; None for all."""
    bind = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    bind.add_argument("-b", "--bind")
    try:
        found = bind.parse_known_args(services.options_of(service, where))[0].bind
        return None if found is None else resolve.address(found)
    except (errors.GanetiError, argparse.ArgumentError):
        return None


def _is_starting(pid: int, service: services.Service) -> bool:
    """Whether a process is a daemon of this project that has not locked its pid file yet."""
    return sockets.program(pid) == service.name


def _peers(where: Paths, host: str) -> list[Peer]:
    listed = read_addresses(_ssconf(where, "node_primary_ips"))
    offline = set(_ssconf(where, "offline_nodes").split())
    others = {
        name: address for name, address in listed.items() if name != host and name not in offline
    }
    if not others:
        return []
    from ganeti.doctor.looks import peers  # TLS is only needed here

    answers = peers.ask(where, others)
    return [Peer(name, address, _address(name), *answers[name]) for name, address in others.items()]


def read_addresses(text: str) -> dict[str, str]:
    """Nodes and their addresses in ``ssconf_node_primary_ips``. Pure."""
    found = {}
    for line in text.splitlines():
        name, _, address = line.partition(" ")
        if resolve.is_address(address.strip()):
            found[name] = address.strip()
    return found


def _ssconf(where: Paths, key: str) -> str:
    assert key in ssconf_keys.KEYS
    try:
        return where.ssconf(key).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
