"""Node calls about the address of the cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.objects import MasterNetwork
from ganeti.rpc.timing import FAST, call


class MasterIpCalls(ABC):
    """Answered by :class:`ganeti.node.master_ip.MasterIp`."""

    @abstractmethod
    @call(timeout=FAST)
    def node_activate_master_ip(
        self, master_params: MasterNetwork, use_external_mip_script: bool
    ) -> None:
        """Put the address of the cluster on this node; no error when it is there."""

    @abstractmethod
    @call(timeout=FAST)
    def node_deactivate_master_ip(
        self, master_params: MasterNetwork, use_external_mip_script: bool
    ) -> None:
        """Take the address of the cluster off this node; no error when it is not there."""

    @abstractmethod
    @call(timeout=FAST)
    def node_change_master_netmask(
        self, old_netmask: int, netmask: int, master_ip: str, master_netdev: str
    ) -> None:
        """Change the prefix length of the address of the cluster, if this node has it."""
