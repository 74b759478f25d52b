"""A NIC of an instance."""

from __future__ import annotations

from typing import Annotated

from ganeti.base.json_types import JsonObject
from ganeti.base.typed import doc
from ganeti.model.base import ConfigObject
from ganeti.model.ids import NetworkUuid


class Nic(ConfigObject, frozen=True, kw_only=True):
    mac: Annotated[str, doc("MAC address")]
    ip: Annotated[str | None, doc("IP address")] = None
    nicparams: Annotated[
        JsonObject, doc("Parameters that differ from those of the cluster or of the network")
    ] = {}
    network: Annotated[NetworkUuid | None, doc("UUID of the network that it belongs to")] = None
    name: Annotated[str | None, doc("Name that no other NIC has")] = None
    uuid: Annotated[str, doc("UUID of the NIC")]
