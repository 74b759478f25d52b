"""Node calls that replace the certificates of a node while it works."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.timing import FAST, call


class CryptoCalls(ABC):
    """Answered by :class:`ganeti.node.crypto.Crypto`."""

    @abstractmethod
    @call(timeout=FAST)
    def crypto_trust(self, authorities: str) -> None:
        """Accept certificates of these authorities (PEM, one or several) and of no other one."""

    @abstractmethod
    @call(timeout=FAST)
    def crypto_install(self, server: str, client: str) -> str:
        """Replace ``server.pem`` and ``client.pem``; the digest of the new client certificate.

        Each has key and certificate, for the name of this node, from an authority that it accepts.
        """

    @abstractmethod
    @call(timeout=FAST)
    def crypto_ends(self) -> dict[str, float]:
        """When ``server.pem`` and ``client.pem`` of this node end (Unix time), by file name."""

    @abstractmethod
    @call(timeout=FAST)
    def crypto_forget(self) -> None:
        """Remove the earlier certificates that this node kept."""
