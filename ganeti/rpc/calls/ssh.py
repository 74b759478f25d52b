"""Node calls about SSH: the keys of root, and who may log in as root.

A node that was not set up for it (``gnt-cluster init --no-ssh-init``) refuses what changes them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.timing import FAST, call


class SshCalls(ABC):
    """Answered by :class:`ganeti.node.ssh.Ssh`. Keys are lines as in ``authorized_keys``."""

    @abstractmethod
    @call(timeout=FAST)
    def node_ssh_keys(self, key_type: str, key_bits: int) -> tuple[str, list[str]]:
        """Public key of root, made if it is missing, and public keys of the SSH server."""

    @abstractmethod
    @call(timeout=FAST)
    def node_ssh_key_add(self, keys: list[str]) -> None:
        """Let the owners of these keys log in as root."""

    @abstractmethod
    @call(timeout=FAST)
    def node_ssh_key_remove(self, keys: list[str]) -> None:
        """Do not let the owners of these keys log in as root."""

    @abstractmethod
    @call(timeout=FAST)
    def node_ssh_keys_renew(self, key_type: str, key_bits: int, install: bool) -> str:
        """Make a new key of root beside the one in use, or put the one made last into its place.

        Returns the new public key.
        """
