"""ssh-update: change the SSH keys of a node as the master asks on standard input."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from ganeti import constants, errors, paths
from ganeti.net import ssh_files
from ganeti.net.ssh_files import Places
from ganeti.tools import ssh_requests

PROGRAM = "ssh-update"
_Action = Literal["add", "replace_or_add", "remove", "override", "clear"]
_Keys = tuple[_Action, dict[str, list[str]]]


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """Request for changes of SSH files; names as the master writes them."""

    cluster_name: str
    node_daemon_certificate: str | None = None
    #: keys of nodes in ``ganeti_pub_keys``
    public_keys: _Keys | None = None
    #: who may log in as root
    authorized_keys: _Keys | None = None
    #: type, bits and the end of the names of a new pair of keys
    generate: tuple[str, int, str] | None = None
    ssh_key_type: str = "rsa"
    ssh_key_bits: int = 2048


def main(argv: Sequence[str] | None = None) -> int:
    """0 done; 1 refused or failed."""
    return ssh_requests.run(parser(), argv, _work)


def parser() -> argparse.ArgumentParser:
    return ssh_requests.make_parser(
        PROGRAM,
        "Change the public keys that a node knows, who may log in as root, or the keys of root.",
    )


def _work(*, dry_run: bool, say: Callable[[str], None]) -> int:
    request = ssh_requests.read_request(Request)
    places = Places(paths.current())
    ssh_requests.check_cluster(places.paths, request.cluster_name, request.node_daemon_certificate)
    for change in (request.public_keys, request.authorized_keys):
        for keys in (change[1] if change else {}).values():
            for key in keys:
                ssh_files.check_public(key)
    if request.authorized_keys is not None:
        _authorize(places, request.authorized_keys, dry_run=dry_run, say=say)
    if request.public_keys is not None:
        old = ssh_files.read_keys(places.cluster)
        new = ssh_files.changed_keys(old, *request.public_keys)
        text = ssh_files.keys_text(new)
        ssh_files.write(places.cluster, text, 0o600, dry_run=dry_run, say=say)
    if request.generate is not None:
        _generate(places, request.generate, dry_run=dry_run, say=say)
    return constants.EXIT_SUCCESS


def _authorize(places: Places, change: _Keys, *, dry_run: bool, say: Callable[[str], None]) -> None:
    action, given = change
    keys = [key.strip() for found in given.values() for key in found]
    old = ssh_files.read_lines(places.authorized)
    if action in ("add", "replace_or_add"):
        lines = ssh_files.changed_lines(old, add=keys)
    elif action == "remove":
        lines = ssh_files.changed_lines(old, drop=keys)
    else:
        # Keys of people may be in this file: it is never emptied or replaced.
        raise errors.ParameterError(f"authorized_keys cannot be changed by '{action}'")
    text = "".join(f"{line}\n" for line in lines)
    ssh_files.write(places.authorized, text, 0o600, dry_run=dry_run, say=say)


def _generate(
    places: Places, wish: tuple[str, int, str], *, dry_run: bool, say: Callable[[str], None]
) -> None:
    kind, bits, suffix = wish
    if "/" in suffix or "\0" in suffix:
        raise errors.ParameterError(f"{suffix[:20]!r} cannot be the end of a file name")
    private = places.key(kind, suffix)
    say(f"{'would make' if dry_run else 'make'} {private}")
    if not dry_run:
        ssh_files.generate(private, kind, bits)


if __name__ == "__main__":
    sys.exit(main())
