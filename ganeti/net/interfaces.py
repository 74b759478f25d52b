"""Network devices of this host, as the kernel shows them."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from pathlib import Path

from ganeti import errors
from ganeti.net import resolve

_INTERFACES = Path("/sys/class/net")


def has_address(address: str) -> bool:
    """Whether an IP address belongs to this host; ParameterError for something else."""
    if not resolve.is_address(address):
        raise errors.ParameterError(f"{address[:80]!r} is not an IP address")
    with socket.socket(resolve.family(address), socket.SOCK_DGRAM) as sock:
        try:
            sock.bind((address, 0))
        except OSError as err:
            if err.errno == errno.EADDRNOTAVAIL:
                return False
            raise errors.GenericError(f"cannot search for {address}: {err.strerror}") from err
    return True


def outward_address() -> str | None:
    """The address that this host would call far ones from; None without a route. Sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("198.51.100.1", 9))
        except OSError:
            return None
        return str(sock.getsockname()[0])


def exists(name: str) -> bool:
    """Whether there is a network device of this name."""
    return _is_name(name) and (_INTERFACES / name).is_dir()


def find_missing_bridges(names: Sequence[str]) -> list[str]:
    """The names that are not a bridge of the kernel on this host."""
    return [
        name for name in names if not _is_name(name) or not (_INTERFACES / name / "bridge").is_dir()
    ]


def bridge_command(name: str) -> str:
    """The command that makes a bridge on a node."""
    return f"ip link add name {name} type bridge && ip link set {name} up"


def _is_name(name: str) -> bool:
    return "/" not in name and name not in ("", ".", "..")
