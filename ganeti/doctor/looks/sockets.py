"""Processes and the ports on which they listen, by the tables of the kernel."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: State of a TCP socket that takes connections, and of a UDP socket without a peer.
_STATES = {"tcp": "0A", "udp": "07"}


@dataclass(frozen=True)
class Listener:
    """A socket that takes connections or packets."""

    protocol: str
    address: str
    port: int
    inode: int


def listening() -> list[Listener]:
    """All such sockets of this network namespace."""
    found: list[Listener] = []
    for protocol in _STATES:
        for name in (protocol, f"{protocol}6"):
            try:
                text = Path(f"/proc/net/{name}").read_text(encoding="ascii")
            except OSError:
                continue
            found += read_table(text, protocol)
    return found


def read_table(text: str, protocol: str) -> Iterator[Listener]:
    """Sockets in the text of ``/proc/net/tcp`` and its like. Pure."""
    for line in text.splitlines()[1:]:
        words = line.split()
        if len(words) < 10 or words[3] != _STATES[protocol]:
            continue
        address, _, port = words[1].rpartition(":")
        yield Listener(protocol, _address(address), int(port, 16), int(words[9]))


def _address(text: str) -> str:
    """An address as the kernel prints it: 32-bit words in the order of bytes of the machine."""
    words = (text[at : at + 8] for at in range(0, len(text), 8))
    packed = b"".join(int(word, 16).to_bytes(4, "little") for word in words)
    found = ipaddress.ip_address(packed)
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)


def overlaps(listener: str, address: str | None) -> bool:
    """Whether nobody else can listen on an address (None: on all) while this one is taken."""
    here = ipaddress.ip_address(listener)
    if address is None or here.is_unspecified:
        return True
    return here == ipaddress.ip_address(address)


def owner(inode: int) -> int | None:
    """The process that has a socket open; None when it cannot be seen."""
    wanted = f"socket:[{inode}]"
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if any(os.readlink(each) == wanted for each in (entry / "fd").iterdir()):
                return int(entry.name)
        except OSError:
            continue
    return None


def program(pid: int) -> str:
    """The name of a process, by its command line without the interpreter."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return "?"
    names = [os.path.basename(word) for word in words if word and not word.startswith("-")]
    if names and names[0].startswith("python") and len(names) > 1:
        return names[1]
    return names[0] if names else "?"
