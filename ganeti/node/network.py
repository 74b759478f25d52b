"""The network of this host: own addresses and bridges."""

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


def missing_bridges(names: Sequence[str]) -> list[str]:
    """The names that are not a bridge of the kernel on this host."""
    return [
        name
        for name in names
        if "/" in name or name in ("", ".", "..") or not (_INTERFACES / name / "bridge").is_dir()
    ]
