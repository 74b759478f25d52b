"""Node groups: nodes that share a network and a storage neighbourhood."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti.base.json_types import JsonObject
from ganeti.base.typed import doc
from ganeti.model.base import Tagged
from ganeti.model.enums import AllocPolicy
from ganeti.model.ids import GroupUuid, NetworkUuid


class NodeGroup(Tagged, frozen=True, kw_only=True):
    left_out_empty: ClassVar[frozenset[str]] = frozenset({"beparams"})

    uuid: GroupUuid
    name: Annotated[str, doc("Name of the group")]
    members: Annotated[tuple[str, ...], doc("Always empty; the nodes name their group")] = ()
    ndparams: Annotated[
        JsonObject, doc("Node parameters that differ from those of the cluster")
    ] = {}
    beparams: Annotated[
        JsonObject,
        doc("Backend parameters that differ from those of the cluster: ha and ha_attempts"),
    ] = {}
    alloc_policy: AllocPolicy = AllocPolicy.PREFERRED
    ipolicy: Annotated[
        JsonObject, doc("Parts of the instance policy that differ from those of the cluster")
    ] = {}
    diskparams: Annotated[
        dict[str, JsonObject],
        doc("Disk parameters that differ from those of the cluster, by disk template"),
    ] = {}
    networks: Annotated[
        dict[NetworkUuid, JsonObject],
        doc("Mode, link and VLAN of the connection to each network, by UUID of the network"),
    ] = {}
    hv_state_static: Annotated[JsonObject | None, doc("What is set aside of hypervisors")] = None
    disk_state_static: Annotated[JsonObject | None, doc("What is set aside of volume groups")] = (
        None
    )
