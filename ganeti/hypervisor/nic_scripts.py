"""The variables about a NIC for scripts of administrators; pure."""

from __future__ import annotations

import shlex

from ganeti.base import process
from ganeti.model.enums import NicMode
from ganeti.rpc.objects import NodeInstance, NodeNic


def script_environment(
    instance: NodeInstance, index: int, nic: NodeNic, tap: str
) -> dict[str, str]:
    """Variables of ``kvm-vif-bridge``; the names are an interface (Ganeti's network scripts)."""
    values = {
        "PATH": process.SAFE_PATH,
        "LC_ALL": "C",
        "INSTANCE": instance.name,
        "TAGS": " ".join(instance.tags),
        "INTERFACE": tap,
        "INTERFACE_INDEX": str(index),
        "INTERFACE_NAME": nic.name or "",
        "INTERFACE_UUID": nic.uuid,
        "MAC": nic.mac,
        "IP": nic.ip or "",
        "MODE": str(nic.nicparams.get("mode", "")),
        "LINK": str(nic.nicparams.get("link", "")),
        "VLAN": str(nic.nicparams.get("vlan", "")),
    }
    if values["MODE"] in (NicMode.BRIDGED, NicMode.OPENVSWITCH):
        values["BRIDGE"] = values["LINK"]
    network = nic.netinfo or {}
    for variable, key in (
        ("NETWORK_NAME", "name"),
        ("NETWORK_UUID", "uuid"),
        ("NETWORK_SUBNET", "network"),
        ("NETWORK_GATEWAY", "gateway"),
        ("NETWORK_SUBNET6", "network6"),
        ("NETWORK_GATEWAY6", "gateway6"),
        ("NETWORK_MAC_PREFIX", "mac_prefix"),
    ):
        if network.get(key):
            values[variable] = str(network[key])
    if network.get("tags"):
        values["NETWORK_TAGS"] = " ".join(network["tags"])
    return values


def shell_facts(instance: NodeInstance, index: int, nic: NodeNic) -> str:
    """The variables as lines for a shell to source, without the name of the interface."""
    known = script_environment(instance, index, nic, "")
    for name in ("INTERFACE", "PATH", "LC_ALL"):
        del known[name]
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in sorted(known.items()))
