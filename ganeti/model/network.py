"""Networks: address pools that instances take their addresses from."""

from __future__ import annotations

from typing import Annotated

from ganeti.base.typed import doc
from ganeti.model.base import Tagged
from ganeti.model.ids import NetworkUuid


class Network(Tagged, frozen=True, kw_only=True):
    """An IPv4 network; reservations are strings of 0 and 1, one per address of the subnet."""

    uuid: NetworkUuid
    name: Annotated[str, doc("Name of the network")]
    mac_prefix: str | None = None
    network: str
    network6: str | None = None
    gateway: str | None = None
    gateway6: str | None = None
    dns: Annotated[tuple[str, ...] | None, doc("Name servers for guests with cloud-init")] = None
    mtu: Annotated[int | None, doc("MTU for guests with cloud-init")] = None
    reservations: Annotated[
        str | None,
        doc("Addresses that instances use: a 0 or 1 for each address of the network"),
    ] = None
    ext_reservations: Annotated[
        str | None,
        doc("Addresses that something else uses: a 0 or 1 for each address of the network"),
    ] = None
