"""Networks: address pools that instances take their addresses from."""

from __future__ import annotations

from ganeti.model.base import Tagged
from ganeti.model.names import NetworkUuid


class Network(Tagged, frozen=True, kw_only=True):
    """An IPv4 network; reservations are strings of 0 and 1, one per address of the subnet."""

    uuid: NetworkUuid
    name: str
    mac_prefix: str | None = None
    network: str
    network6: str | None = None
    gateway: str | None = None
    gateway6: str | None = None
    reservations: str | None = None
    ext_reservations: str | None = None
