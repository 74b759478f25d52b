"""Nodes: the servers that run instances."""

from __future__ import annotations

from typing import Any

from ganeti.model.base import Tagged
from ganeti.model.names import GroupUuid, NodeRole, NodeUuid


class Node(Tagged, frozen=True, kw_only=True):
    """A server of the cluster."""

    uuid: NodeUuid
    name: str
    primary_ip: str
    #: address for replication traffic; the primary one when there is only one network
    secondary_ip: str
    master_candidate: bool = False
    offline: bool = False
    drained: bool = False
    group: GroupUuid
    master_capable: bool = True
    vm_capable: bool = True
    ndparams: dict[str, Any] = {}
    powered: bool = True
    hv_state_static: dict[str, Any] | None = None
    disk_state_static: dict[str, Any] | None = None
    #: while it is in maintenance: where its instances came from and went to (``ops.planning``)
    maintenance: dict[str, Any] | None = None

    def role(self, master: NodeUuid) -> NodeRole:
        """Role letter, given the uuid of the master node."""
        if self.uuid == master:
            return NodeRole.MASTER
        if self.master_candidate:
            return NodeRole.CANDIDATE
        if self.drained:
            return NodeRole.DRAINED
        return NodeRole.OFFLINE if self.offline else NodeRole.REGULAR
