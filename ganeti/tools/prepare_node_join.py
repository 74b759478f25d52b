"""prepare-node-join: give a server the SSH keys of the cluster that it is about to join."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from ganeti import constants, paths
from ganeti.base import process
from ganeti.net import ssh_files
from ganeti.net.ssh_files import Places
from ganeti.tools import ssh_requests

PROGRAM = "prepare-node-join"
_PATIENCE = 60.0
#: Type, private and public key.
_Key = tuple[str, str, str]


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """Request for a server that joins; names as the master writes them."""

    cluster_name: str
    node_daemon_certificate: str | None = None
    #: keys of the SSH server
    ssh_host_key: list[_Key] | None = None
    #: keys of root
    ssh_root_key: list[_Key] | None = None
    #: who may log in as root
    authorized_keys: list[str] = []
    ssh_key_type: str = "rsa"
    ssh_key_bits: int = 2048


def main(argv: Sequence[str] | None = None) -> int:
    """0 done; 1 refused or failed."""
    return ssh_requests.run(parser(), argv, _work)


def parser() -> argparse.ArgumentParser:
    return ssh_requests.make_parser(
        PROGRAM,
        "Give a server the SSH keys of a cluster before it joins, unless it belongs to another"
        " one.",
    )


def _work(*, dry_run: bool, say: Callable[[str], None]) -> int:
    request = ssh_requests.read_request(Request)
    places = Places(paths.current())
    ssh_requests.check_cluster(places.paths, request.cluster_name, request.node_daemon_certificate)
    host = list(_files(request.ssh_host_key or (), places.host, "ssh_host_{}_key"))
    own = list(_files(request.ssh_root_key or (), places.user, "id_{}"))
    keys = [ssh_files.check_public(key) for key in request.authorized_keys]
    keys += [
        ssh_files.check_public(public) for _kind, _private, public in request.ssh_root_key or ()
    ]
    for path, text, mode in (*host, *own):
        ssh_files.write(path, text, mode, dry_run=dry_run, say=say)
    if keys:
        old = ssh_files.read_lines(places.authorized)
        lines = ssh_files.changed_lines(old, add=keys)
        text = "".join(f"{line}\n" for line in lines)
        ssh_files.write(places.authorized, text, 0o600, dry_run=dry_run, say=say)
    if host and not dry_run:
        say("tell the SSH server to read its keys again")
        reload_ssh(places)
    return constants.EXIT_SUCCESS


def _files(keys: Sequence[_Key], directory: Path, name: str) -> Iterator[tuple[Path, str, int]]:
    """Files of keys: where, what, mode."""
    for kind, private, public in keys:
        path = directory / name.format(ssh_files.check_type(kind))
        yield path, ssh_files.check_private(private).rstrip("\n") + "\n", 0o600
        yield path.with_name(f"{path.name}.pub"), f"{ssh_files.check_public(public)}\n", 0o644


def reload_ssh(places: Places) -> None:
    """Make a running SSH server use the new keys; nothing in a cluster below a directory."""
    if str(places.paths.root) == "/":
        process.run_checked(
            ["systemctl", "try-reload-or-restart", "ssh.service"], timeout=_PATIENCE
        )


if __name__ == "__main__":
    sys.exit(main())
