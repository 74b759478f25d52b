"""Node groups: nodes that share a network and a storage neighbourhood."""

from __future__ import annotations

from typing import Any

from ganeti.model.base import Tagged
from ganeti.model.names import AllocPolicy, GroupUuid, NetworkUuid


class NodeGroup(Tagged, frozen=True, kw_only=True):
    uuid: GroupUuid
    name: str
    #: always empty in the file; members are the nodes that name the group
    members: tuple[str, ...] = ()
    ndparams: dict[str, Any] = {}
    alloc_policy: AllocPolicy = AllocPolicy.PREFERRED
    ipolicy: dict[str, Any] = {}
    diskparams: dict[str, dict[str, Any]] = {}
    #: network uuid -> {mode, link, vlan}
    networks: dict[NetworkUuid, dict[str, Any]] = {}
    hv_state_static: dict[str, Any] | None = None
    disk_state_static: dict[str, Any] | None = None
