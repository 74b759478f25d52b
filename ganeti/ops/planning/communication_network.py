"""The network between guests and their nodes: the jobs that make it and connect groups to it."""

from __future__ import annotations

from collections.abc import Iterable

from ganeti import constants
from ganeti.model.config import Config
from ganeti.opcodes.addresses import Ipv4Address, Ipv4Network, Ipv6Network
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.enums import NICMode
from ganeti.opcodes.network import OpNetworkAdd, OpNetworkConnect

_NETWORK = "169.254.0.0/16"
_NETWORK6 = "fe80::/10"
_MAC_PREFIX = "52:54:00"
#: Routing table of the nodes that reaches the guests.
_LINK = "communication_rt"


def jobs(config: Config, name: str, groups: Iterable[str], priority: int) -> list[list[OpCode]]:
    """One job that makes the network if there is none, and connects node groups (names) to it.

    Nothing to do gives no job.
    """
    known = next((item for item in config.networks.values() if item.name == name), None)
    ops: list[OpCode] = []
    if known is None:
        ops.append(
            OpNetworkAdd(
                network_name=name,
                network=Ipv4Network(_NETWORK),
                network6=Ipv6Network(_NETWORK6),
                mac_prefix=_MAC_PREFIX,
                add_reserved_ips=[Ipv4Address(constants.METADATA_ADDRESS)],
                conflicts_check=False,
                priority=priority,  # type: ignore[arg-type]
            )
        )
    connected = {
        group.name for group in config.groups.values() if known and known.uuid in group.networks
    }
    ops += [
        OpNetworkConnect(
            group_name=group,
            network_name=name,
            network_mode=NICMode.ROUTED,
            network_link=_LINK,
            network_vlan="",
            conflicts_check=False,
            priority=priority,  # type: ignore[arg-type]
        )
        for group in sorted(groups)
        if group not in connected
    ]
    return [ops] if ops else []
