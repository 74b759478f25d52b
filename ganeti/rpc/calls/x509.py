"""Node calls about the keys of transfers between clusters."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.timing import NORMAL, call


class X509Calls(ABC):
    """Answered by :class:`ganeti.node.x509.X509`."""

    @abstractmethod
    @call(timeout=NORMAL)
    def x509_cert_create(self, validity: int) -> tuple[str, str]:
        """Make a key that is valid for so many seconds; its name, and its certificate (PEM)."""

    @abstractmethod
    @call(timeout=NORMAL)
    def x509_cert_remove(self, name: str) -> None:
        """Destroy a key; no error when it is gone."""
