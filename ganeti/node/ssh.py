"""Node calls about SSH: the keys of root, and who may log in as root.

Lines of people in ``authorized_keys`` stay as they are. The master may change these files only
where root of this node agreed: ``gnt-cluster init`` and ``ganeti-node-setup`` leave a file that
allows it, and only root can make it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from pathlib import Path

from ganeti import errors
from ganeti.base import files
from ganeti.base.text import join_names
from ganeti.net import ssh_files
from ganeti.net.ssh_files import Places
from ganeti.node.context import NodeContext
from ganeti.rpc.calls.ssh import SshCalls

log = logging.getLogger(__name__)

#: End of the name of a key that is not in use yet.
_NEW = ".ganeti-new"


class Ssh(SshCalls):
    """Changes the files one call after the other."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._places = Places(context.paths)
        self._one = threading.Lock()

    def node_ssh_keys(self, key_type: str, key_bits: int) -> tuple[str, list[str]]:
        """A key of root that is there already is taken, of whatever length.

        Raises:
            OpPrereqError: this node does not let the cluster manage SSH.
            OpExecError: the key of root has a passphrase.
            CommandError: no key can be made.
        """
        with self._changing():
            private = self._places.key(key_type)
            if not private.exists():
                self._generate(private, key_type, key_bits)
            public = ssh_files.derive_public(private)
            beside = ssh_files.public_of(private)
            if ssh_files.identify(next(iter(ssh_files.read_lines(beside)), "")) != (
                ssh_files.identify(public)
            ):
                # OpenSSH offers the key in this file.
                files.write_atomic(beside, f"{public}\n", mode=0o644)
            return public, self._places.host_keys()

    def node_ssh_key_add(self, keys: list[str]) -> None:
        """Durable at return.

        Raises:
            OpPrereqError: this node does not let the cluster manage SSH.
            ParameterError: one is not a public key; nothing was changed.
        """
        self._authorize(add=keys)

    def node_ssh_key_remove(self, keys: list[str]) -> None:
        """Durable at return; sessions that are open stay.

        Raises:
            OpPrereqError: this node does not let the cluster manage SSH.
            ParameterError: one is not a public key; nothing was changed.
        """
        self._authorize(drop=keys)

    def _authorize(self, *, add: list[str] | None = None, drop: list[str] | None = None) -> None:
        for key in (*(add or ()), *(drop or ())):
            ssh_files.check_public(key)
        path = self._places.authorized
        with self._changing():
            old = ssh_files.read_lines(path)
            new = ssh_files.changed_lines(old, add=add or (), drop=drop or ())
            if new == old:
                return
            if not path.parent.exists():
                files.ensure_dir(path.parent, 0o700)
            files.write_atomic(path, "".join(f"{line}\n" for line in new), mode=0o600)
        log.info("%s: %d lines before, %d now", path, len(old), len(new))

    def node_ssh_keys_renew(self, key_type: str, key_bits: int, install: bool) -> str:
        """The key that was in use stays beside the new one, with ``.old`` at its end.

        Raises:
            OpPrereqError: this node does not let the cluster manage SSH.
            OpExecError: there is no new key to put into place.
            CommandError: no key can be made.
        """
        private = self._places.key(key_type)
        new = self._places.key(key_type, _NEW)
        with self._changing():
            if not install:
                self._generate(new, key_type, key_bits)
                return ssh_files.derive_public(new)
            if not new.exists():
                raise errors.OpExecError(f"there is no new key {new}")
            ssh_files.install(new, private)
            log.info("%s was replaced", private)
            return ssh_files.derive_public(private)

    def _generate(self, private: Path, kind: str, bits: int) -> None:
        ssh_files.generate(private, kind, bits, f"root@{self._context.name}")

    def _changing(self) -> threading.Lock:
        """Hold the lock of SSH files while they are changed.

        Raises:
            OpPrereqError: root of this node did not agree.
        """
        mark = self._context.paths.ssh_managed
        if not mark.exists():
            raise errors.make_state_error(
                f"this node does not let the cluster manage SSH; to allow it: touch {mark}"
            )
        return self._one

    # checks ------------------------------------------------------------------------------

    def find_flaws(self, allowed: Mapping[str, str], refused: Mapping[str, str]) -> list[str]:
        """Return the problems of log-ins of root from other nodes; keys are by node name."""
        if not self._context.paths.ssh_managed.exists():
            return [
                "it does not let the cluster manage SSH; to allow it, touch"
                f" {self._context.paths.ssh_managed} there and run gnt-cluster redist-conf"
            ]
        here = {ssh_files.identify(line) for line in ssh_files.read_lines(self._places.authorized)}
        missing = [
            name for name, key in sorted(allowed.items()) if ssh_files.identify(key) not in here
        ]
        extra = [name for name, key in sorted(refused.items()) if ssh_files.identify(key) in here]
        flaws = []
        if missing:
            flaws.append(f"root of {join_names(missing)} cannot log in here: a key is missing in")
        if extra:
            flaws.append(f"root of {join_names(extra)} may still log in here, by a key in")
        return [f"{flaw} {self._places.authorized}; run gnt-cluster redist-conf" for flaw in flaws]

    def find_clutter(self, nodes: Mapping[str, str]) -> list[str]:
        """Keys that say they are those of a node, and are not; the keys in use are given."""
        wanted = {f"root@{name}": ssh_files.identify(key) for name, key in nodes.items()}
        return [
            f"{self._places.authorized} has a key with the name {owner} that this node does not"
            " have; remove that line if nobody needs it"
            for line in ssh_files.read_lines(self._places.authorized)
            for owner in line.split()[-1:]
            if owner in wanted and wanted[owner] != ssh_files.identify(line)
        ]
