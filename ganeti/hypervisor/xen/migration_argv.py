"""Command lines of the programs that send a Xen guest to another node, and receive it. Pure.

``xl`` reads and writes the guest; ``socat`` carries its bytes between the nodes, over TLS with the
certificates of both nodes. There is a pair for a live migration (:func:`send_argv`,
:func:`receive_argv`) and one for a guest that is stopped while it moves (:func:`save_argvs`,
:func:`restore_argvs`).
"""

from __future__ import annotations

import re
from pathlib import Path

from ganeti.hypervisor.xen import xl
from ganeti.paths import Paths

SOCAT = "socat"

#: Size of the buffer of socat in bytes.
_BLOCK = "-b524288"

#: Seconds without a byte until socat takes the other node for lost. Longer than the target needs
#: to build the domain, during which little is sent.
_SILENCE = "-T120"

HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}")


def receive_argv(source: str, place: tuple[str, int], paths: Paths) -> list[str]:
    """The program that receives a live migration from the node ``source``."""
    listen = _listen(source, place, paths)
    return [SOCAT, _BLOCK, _SILENCE, listen, f"EXEC:{xl.PROGRAM} migrate-receive"]


def restore_argvs(
    config: Path, source: str, place: tuple[str, int], paths: Paths
) -> list[list[str]]:
    """The programs that receive a stopped domain; the first writes to the second."""
    receive = [SOCAT, "-u", _BLOCK, _SILENCE, _listen(source, place, paths), "-"]
    return [receive, [xl.PROGRAM, "restore", "-p", str(config), "/proc/self/fd/0"]]


def _listen(source: str, place: tuple[str, int], paths: Paths) -> str:
    address, port = place
    where = f"[{address}]" if ":" in address else address
    family = "pf=ip6" if ":" in address else "pf=ip4"
    options = f"bind={where},{family},reuseaddr,{_tls(paths)},commonname={source}"
    return f"OPENSSL-LISTEN:{port},{options}"


def send_argv(name: str, address: str, port: int, target: str, paths: Paths) -> list[str]:
    """The program that sends a live migration.

    ``xl`` runs the value of its option ``-s`` in a shell, with the host and an ssh command added to
    it; the ``#`` at its end makes a comment of those. Nothing in the value comes from a user. The
    caller has checked what came from the other node: address, port and host name.
    """
    connect = _connect(address, port, target, paths)
    return [xl.PROGRAM, "migrate", "-s", f"{SOCAT} {_BLOCK} {_SILENCE} - {connect} #", name, "-"]


def save_argvs(name: str, address: str, port: int, target: str, paths: Paths) -> list[list[str]]:
    """The programs that send a stopped domain; the first writes to the second."""
    save = [xl.PROGRAM, "save", "-p", name, "/proc/self/fd/1"]
    connect = _connect(address, port, target, paths)
    return [save, [SOCAT, "-u", _BLOCK, _SILENCE, "-", connect]]


def _connect(address: str, port: int, target: str, paths: Paths) -> str:
    where = f"[{address}]" if ":" in address else address
    return f"OPENSSL:{where}:{port},{_tls(paths)},commonname={target},retry=20,interval=0.25"


def _tls(paths: Paths) -> str:
    return f"cert={paths.server_cert},cafile={paths.ca_cert},verify=1"
