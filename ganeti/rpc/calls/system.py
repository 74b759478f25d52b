"""Node calls about the server itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.rpc.timing import FAST, NORMAL, ONE_DAY, URGENT, call


class SystemCalls(ABC):
    """Answered by :class:`ganeti.node.system.System`."""

    @abstractmethod
    @call(timeout=URGENT)
    def version(self) -> int:
        """Protocol version of the node daemon."""

    @abstractmethod
    @call(timeout=URGENT)
    def node_info(
        self,
        storage_units: list[tuple[str, str, list[Any]]],
        hv_specs: list[tuple[str, JsonObject]],
    ) -> tuple[str, list[JsonObject] | None, list[JsonObject] | None]:
        """Boot id, space per storage unit ``(type, name, params)``, resources per hypervisor."""

    @abstractmethod
    @call(timeout=FAST)
    def node_has_ip_address(self, address: str) -> bool:
        """Whether an address belongs to this node."""

    @abstractmethod
    @call(timeout=URGENT)
    def bridges_exist(self, bridges: list[str]) -> None:
        """Refuse when one of the bridges is missing."""

    @abstractmethod
    @call(timeout=FAST)
    def node_crypto_tokens(
        self, token_request: list[tuple[str, str, JsonObject]]
    ) -> list[list[str]]:
        """Public tokens of this node: for ``("ssl", "get", {})`` the digest of its client
        certificate, as ``["ssl", digest]``."""

    @abstractmethod
    @call(timeout=URGENT)
    def master_node_name(self) -> str:
        """Name of the node that this node takes for the master."""

    @abstractmethod
    @call(timeout=FAST)
    def node_stop_master(self, patience: float | None = None) -> None:
        """Stop the master daemon on this node; kill it if it runs after so many seconds."""

    @abstractmethod
    @call(timeout=NORMAL)
    def node_leave_cluster(self, modify_ssh_setup: bool) -> None:
        """Forget the cluster: remove its files and certificates, then stop the daemon."""

    @abstractmethod
    @call(timeout=NORMAL)
    def node_powercycle(self, hypervisor: str, hvparams: JsonObject) -> str:
        """Restart this server at once, without stopping anything; answers before it does."""

    @abstractmethod
    @call(timeout=ONE_DAY)
    def test_delay(self, duration: float) -> None:
        """Wait."""
