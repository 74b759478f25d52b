"""The own address that a daemon listens on."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from typing import Final

from ganeti import errors, paths
from ganeti.net import resolve

_SIOCGIFADDR: Final = 0x8915
#: All addresses of a family, and one at which the host itself reaches what listens there.
_LOCAL: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def address(bind: str | None, interface: str | None, where: paths.Paths) -> str:
    """The address that the options ``-b`` and ``-i`` mean, or the default: all of the family
    of addresses that the cluster uses. Below a root of its own a node has only its own one.

    Raises:
        ParameterError: the interface has no address, or another one than ``bind``.
        ResolverError: ``bind`` is a name without an address.
    """
    if interface is not None:
        own = interface_address(interface)
        if bind not in (None, own):
            raise errors.ParameterError(f"{bind} is not the address of {interface}, which is {own}")
        return own
    if bind is not None:
        return resolve.address(bind)
    if paths.is_rooted():
        return resolve.address(paths.hostname())
    try:
        family = where.ssconf("primary_ip_family").read_text(encoding="utf-8").strip()
    except OSError:
        # Not told yet, as on a node that is being set up.
        family = ""
    return "::" if family == str(int(socket.AF_INET6)) else "0.0.0.0"


def find_reachable(bind: str) -> str:
    """Address at which this node itself reaches a server that listens on ``bind``."""
    return _LOCAL.get(bind, bind)


def interface_address(name: str) -> str:
    """The first IPv4 address of a network interface.

    Raises:
        ParameterError: no such interface, or it has no IPv4 address.
    """
    request = struct.pack("256s", os.fsencode(name)[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            answer = fcntl.ioctl(sock.fileno(), _SIOCGIFADDR, request)
        except OSError as err:
            raise errors.ParameterError(
                f"network interface {name!r} has no usable IPv4 address: {err.strerror}"
            ) from err
    return socket.inet_ntoa(answer[20:24])
