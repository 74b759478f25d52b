"""The guest at the other end of a connection, found by its address.

A guest can write any source address into a packet. So an address counts only on the interface to
which this node sends what is for it: its own table of routes says which, and the kernel which one a
connection came by (ip(7): the packet information of a connection).
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ganeti import constants

#: linux/in.h
_IP_PKTINFO: Final = 8
_IP_PKTOPTIONS: Final = 9
IP_FREEBIND: Final = 15
_SPACE: Final = 128
_ROUTES = Path("/proc/net/route")


def find_guest(sock: socket.socket) -> str | None:
    """The address of the guest that made a connection; None for everybody else. OSError."""
    address = str(sock.getpeername()[0])
    interface = _interface_of(sock)
    if interface is None or not interface.startswith(constants.COMMUNICATION_INTERFACE):
        return None
    with _ROUTES.open(encoding="ascii") as lines:
        return address if interface == find_route(lines, address) else None


def find_route(lines: Iterable[str], address: str) -> str | None:
    """The interface of the route to this one address in ``/proc/net/route``. Pure."""
    wanted = f"{int.from_bytes(ipaddress.IPv4Address(address).packed, 'little'):08X}"
    for line in lines:
        words = line.split()
        if len(words) > 7 and words[1] == wanted and words[7] == "FFFFFFFF":
            return words[0]
    return None


def _interface_of(sock: socket.socket) -> str | None:
    """The interface by which a connection came; None when the kernel does not say."""
    sock.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
    index = find_index(sock.getsockopt(socket.IPPROTO_IP, _IP_PKTOPTIONS, _SPACE))
    return socket.if_indextoname(index) if index else None


def find_index(control: bytes) -> int:
    """The number of the interface in control messages as of recvmsg(2); 0 without. Pure."""
    header = struct.calcsize("@Nii")
    position = 0
    while position + header <= len(control):
        length, level, kind = struct.unpack_from("@Nii", control, position)
        if (level, kind) == (socket.IPPROTO_IP, _IP_PKTINFO):
            (index,) = struct.unpack_from("@i", control, position + header)
            return int(index)
        position += max(length + -length % struct.calcsize("@N"), header)
    return 0
