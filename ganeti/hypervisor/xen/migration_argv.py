"""Programs that carry the memory of a Xen guest to another node. Pure."""

from __future__ import annotations

import re
from pathlib import Path

from ganeti.hypervisor.xen import xl
from ganeti.paths import Paths

SOCAT = "socat"

#: Bytes that socat moves at a time.
_BLOCK = "-b524288"

#: Seconds without a byte after which socat takes the other node for lost; building the domain
#: at the target, when little is sent, takes less.
_SILENCE = "-T120"

HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}")


def receive_argv(source: str, place: tuple[str, int], paths: Paths) -> list[str]:
    """What waits for a domain that goes on running, from a node; pure."""
    listen = _listen(source, place, paths)
    return [SOCAT, _BLOCK, _SILENCE, listen, f"EXEC:{xl.PROGRAM} migrate-receive"]


def restore_argvs(
    config: Path, source: str, place: tuple[str, int], paths: Paths
) -> list[list[str]]:
    """What waits for a domain that stands still: two programs, one feeds the other; pure."""
    receive = [SOCAT, "-u", _BLOCK, _SILENCE, _listen(source, place, paths), "-"]
    return [receive, [xl.PROGRAM, "restore", "-p", str(config), "/proc/self/fd/0"]]


def _listen(source: str, place: tuple[str, int], paths: Paths) -> str:
    address, port = place
    where = f"[{address}]" if ":" in address else address
    family = "pf=ip6" if ":" in address else "pf=ip4"
    options = f"bind={where},{family},reuseaddr,{_tls(paths)},commonname={source}"
    return f"OPENSSL-LISTEN:{port},{options}"


def send_argv(name: str, address: str, port: int, target: str, paths: Paths) -> list[str]:
    """What sends a domain that goes on running; pure.

    xl hands its option -s to a shell, followed by the host and the command for ssh, which the
    ``#`` hides. Nothing in it comes from a user, and what comes from the other node was checked
    (:func:`_place`): an address, a port, paths and a host name.
    """
    connect = _connect(address, port, target, paths)
    return [xl.PROGRAM, "migrate", "-s", f"{SOCAT} {_BLOCK} {_SILENCE} - {connect} #", name, "-"]


def save_argvs(name: str, address: str, port: int, target: str, paths: Paths) -> list[list[str]]:
    """What sends a domain that stands still: two programs, one feeds the other; pure."""
    save = [xl.PROGRAM, "save", "-p", name, "/proc/self/fd/1"]
    connect = _connect(address, port, target, paths)
    return [save, [SOCAT, "-u", _BLOCK, _SILENCE, "-", connect]]


def _connect(address: str, port: int, target: str, paths: Paths) -> str:
    where = f"[{address}]" if ":" in address else address
    return f"OPENSSL:{where}:{port},{_tls(paths)},commonname={target},retry=20,interval=0.25"


def _tls(paths: Paths) -> str:
    return f"cert={paths.server_cert},cafile={paths.ca_cert},verify=1"
