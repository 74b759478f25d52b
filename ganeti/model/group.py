"""Node groups: nodes that share a network and a storage neighbourhood."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from ganeti.base.typed import doc
from ganeti.model.base import Tagged
from ganeti.model.names import AllocPolicy, GroupUuid, NetworkUuid


class NodeGroup(Tagged, frozen=True, kw_only=True):
    left_out_empty: ClassVar[frozenset[str]] = frozenset({"beparams"})

    uuid: GroupUuid
    name: Annotated[str, doc("Name of the group")]
    members: Annotated[tuple[str, ...], doc("Always empty; the nodes name their group")] = ()
    ndparams: Annotated[
        dict[str, Any], doc("Node parameters that differ from those of the cluster")
    ] = {}
    beparams: Annotated[
        dict[str, Any],
        doc("Backend parameters that differ from those of the cluster: ha and ha_attempts"),
    ] = {}
    alloc_policy: AllocPolicy = AllocPolicy.PREFERRED
    ipolicy: Annotated[
        dict[str, Any], doc("Parts of the instance policy that differ from those of the cluster")
    ] = {}
    diskparams: Annotated[
        dict[str, dict[str, Any]],
        doc("Disk parameters that differ from those of the cluster, by disk template"),
    ] = {}
    networks: Annotated[
        dict[NetworkUuid, dict[str, Any]],
        doc("Mode, link and VLAN of the connection to each network, by UUID of the network"),
    ] = {}
    hv_state_static: Annotated[dict[str, Any] | None, doc("What is set aside of hypervisors")] = (
        None
    )
    disk_state_static: Annotated[
        dict[str, Any] | None, doc("What is set aside of volume groups")
    ] = None
