"""ganeti-node-setup: prepares this server to be taken into a cluster.

Run on the new node by ``gnt-node add``, with a JSON object on standard input (secrets must not
be seen in a process list), a :class:`SetupRequest`. Standard output has a line for each thing that
instances of the cluster would miss here; it keeps no server from joining.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Annotated, TypeVar

import msgspec

from ganeti import constants, errors, paths
from ganeti.base import files, jsonio, services, typed
from ganeti.base.clock import SYSTEM
from ganeti.base.json_types import JsonObject
from ganeti.base.typed import doc
from ganeti.bootstrap.init import make_directories, sweep, write_ssconf
from ganeti.doctor import examine
from ganeti.doctor.facts import Wish
from ganeti.net import hosts_file, pem
from ganeti.paths import Paths
from ganeti.storage import file_paths
from ganeti.storage.registry import file_settings

T = TypeVar("T")


class SetupRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The request of the master; ``*_pem`` hold private keys."""

    cluster_name: str
    node_name: str
    ca_pem: str
    server_pem: str
    client_pem: str
    ssconf: dict[str, str] = {}
    start: bool = True
    manage_ssh: Annotated[bool, doc("Let the cluster say who may log in as root")] = False
    manage_hosts: Annotated[bool, doc("Let the cluster list its nodes in /etc/hosts")] = False
    now: Annotated[float | None, doc("Unix time of the master")] = None
    needs: Annotated[
        JsonObject | None, doc("What instances of the cluster need on this server")
    ] = None
    force_join: Annotated[bool, doc("Remove the node from the cluster it belongs to")] = False


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0, or 1 with one line on standard error."""
    command_line().parse_args(argv)
    try:
        for line in setup(_read(sys.stdin.buffer.read())):
            print(line)
    except (errors.GanetiError, OSError) as err:
        text = errors.text(err) if isinstance(err, errors.GanetiError) else str(err)
        print(f"ganeti-node-setup: {text}", file=sys.stderr)
        return constants.EXIT_FAILURE
    return constants.EXIT_SUCCESS


def command_line() -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog="ganeti-node-setup",
        description="Prepare this server to join a cluster. gnt-node add runs it on the"
        " new server, with a JSON object on standard input, as secrets must not be seen in a list"
        f" of processes. Keys: {', '.join(SetupRequest.__struct_fields__)}.",
        epilog="Exit codes: 0 done; 1 refused, with one line on standard error; 2 wrong options.",
    )


def _read(data: bytes) -> SetupRequest:
    return _shape(jsonio.loads(data), SetupRequest)


def _shape(value: object, kind: type[T]) -> T:
    try:
        return typed.convert(value, kind)
    except msgspec.ValidationError as err:
        raise errors.ParseError(f"standard input is not a set-up request: {err}") from err


def setup(request: SetupRequest) -> list[str]:
    """Write certificates and ssconf files, and start the node daemon.

    Returns a text for each thing that instances of the cluster would miss here.
    A node without a list of directories for file disks gets one with those of the cluster.

    Raises:
        OpPrereqError: this server belongs to another cluster, was told a wrong name, or
            something is wrong with it that would break the node.
        X509CertError: something that was sent is not a certificate; nothing was changed.
        OpExecError: the node daemon does not start.
    """
    where = paths.current()
    wish = None if request.needs is None else _shape(request.needs, Wish)
    _check(where, request)
    for name in ("ca_pem", "server_pem", "client_pem"):
        pem.digest(getattr(request, name), name)
    make_directories(where)
    sweep(where)
    if request.start:
        services.stop(constants.NODED, where)
    files.write_atomic(where.ca_cert, request.ca_pem, mode=0o444)
    files.write_atomic(where.server_cert, request.server_pem, mode=0o400)
    files.write_atomic(where.client_cert, request.client_pem, mode=0o400)
    if request.manage_ssh:
        files.write_atomic(where.ssh_managed, "", mode=0o644)
    else:
        files.remove(where.ssh_managed)
    if request.manage_hosts:
        files.write_atomic(where.hosts_managed, "", mode=0o644)
    else:
        hosts_file.leave(where)
    write_ssconf(where, request.ssconf)
    file_paths.write_default(where, (request.ssconf.get(key, "") for key in file_settings()))
    files.remove(where.init_mark)
    if request.start:
        services.start(constants.NODED, where)
    return [] if wish is None else [found.line for found in examine.before_running(where, wish)]


def _check(where: Paths, request: SetupRequest) -> None:
    host = paths.hostname()
    if host != request.node_name:
        raise errors.make_invalid_error(
            f"this server is called {host}, but the cluster wants to add {request.node_name}",
        )
    name_file = where.ssconf("cluster_name")
    if where.server_cert.exists() and name_file.exists() and not request.force_join:
        other = files.read_text(name_file).strip()
        if other != request.cluster_name:
            raise errors.make_state_error(
                f"this server belongs to the cluster {other} (--force-join removes it from there)",
            )
    found = examine.before_joining(where)
    if request.now is not None:
        found += examine.clock("the master", request.now - SYSTEM.now())
    examine.refuse(found)


if __name__ == "__main__":
    sys.exit(main())
