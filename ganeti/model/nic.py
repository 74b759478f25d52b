"""A NIC of an instance."""

from __future__ import annotations

from typing import Any

from ganeti.model.base import ConfigObject
from ganeti.model.names import NetworkUuid


class Nic(ConfigObject, frozen=True, kw_only=True):
    mac: str
    ip: str | None = None
    #: only what differs from the cluster's (or the network's) values
    nicparams: dict[str, Any] = {}
    #: uuid of a network, whose parameters then apply
    network: NetworkUuid | None = None
    name: str | None = None
    uuid: str
