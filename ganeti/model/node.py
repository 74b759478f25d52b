"""Nodes: the servers that run instances."""

from __future__ import annotations

from typing import Annotated

from ganeti.base.json_types import JsonObject
from ganeti.base.typed import doc
from ganeti.model.base import Tagged
from ganeti.model.enums import NodeRole
from ganeti.model.ids import GroupUuid, NodeUuid
from ganeti.model.recovery import Fencing


class Node(Tagged, frozen=True, kw_only=True):
    """A server of the cluster."""

    uuid: NodeUuid
    name: Annotated[str, doc("Host name, complete with the domain")]
    primary_ip: Annotated[str, doc("Address for node calls")]
    secondary_ip: Annotated[
        str,
        doc("Address for the replication of disks; the primary one if there is one network only"),
    ]
    master_candidate: bool = False
    offline: bool = False
    drained: bool = False
    group: Annotated[GroupUuid, doc("UUID of the node group")]
    master_capable: bool = True
    vm_capable: bool = True
    ndparams: Annotated[JsonObject, doc("Node parameters that differ from those of its group")] = {}
    powered: bool = True
    hv_state_static: Annotated[JsonObject | None, doc("What is set aside of hypervisors")] = None
    disk_state_static: Annotated[JsonObject | None, doc("What is set aside of volume groups")] = (
        None
    )
    maintenance: Annotated[
        JsonObject | None,
        doc(
            "While it is in maintenance: whether it was drained before, and which instances left it"
        ),
    ] = None

    fenced: Annotated[Fencing | None, doc("Its last death that was proven")] = None

    @property
    def is_proven_dead(self) -> bool:
        """Whether it is offline since its death was proven: nothing runs there."""
        return self.offline and self.fenced is not None and self.fenced.over is None

    def role(self, master: NodeUuid) -> NodeRole:
        """Role letter, given the uuid of the master node."""
        if self.uuid == master:
            return NodeRole.MASTER
        if self.master_candidate:
            return NodeRole.CANDIDATE
        if self.drained:
            return NodeRole.DRAINED
        return NodeRole.OFFLINE if self.offline else NodeRole.REGULAR
