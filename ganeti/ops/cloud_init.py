"""The files that a guest reads at its start: the seed of cloud-init's source NoCloud. Pure.

They are made of the configuration at each start, so whichever node runs the instance has them.
Structured ones are JSON, which is YAML, too.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from email import message_from_string
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

from ganeti.base import jsonio
from ganeti.base.json_types import JsonObject
from ganeti.model.cloud_init import CloudInit
from ganeti.model.config import Config
from ganeti.model.ids import GroupUuid
from ganeti.model.instance import Instance
from ganeti.model.network import Network
from ganeti.model.nic import Nic

USER_DATA, VENDOR_DATA, PASSWORD_HASH = "user_data", "vendor_data", "password_hash"
_HEADER = "#cloud-config\n"
#: Header lines with which a MIME message begins.
_MIME = ("Content-Type:", "MIME-Version:")


def make_files(config: Config, instance: Instance) -> dict[str, str]:
    """Name -> content of the files; none for an instance without data for cloud-init."""
    data = instance.cloud_init
    if data is None:
        return {}
    return {
        "meta-data": _dump(_meta_data(instance, data)),
        "network-config": data.network_config or _dump(_network_config(config, instance)),
        "user-data": data.private.get(USER_DATA, ""),
        "vendor-data": _vendor_data(data),
    }


def _dump(value: object) -> str:
    return jsonio.format_pretty(value) + "\n"


def _meta_data(instance: Instance, data: CloudInit) -> JsonObject:
    found: JsonObject = {
        "instance-id": data.make_instance_id(instance.uuid),
        "local-hostname": instance.name,
    }
    return found | ({"public-keys": list(data.ssh_keys)} if data.ssh_keys else {})


def _vendor_data(data: CloudInit) -> str:
    """Vendor data of the administrator, together with the password of the image's user."""
    own, password = data.private.get(VENDOR_DATA, ""), data.private.get(PASSWORD_HASH)
    if password is None:
        return own
    with_password = _HEADER + _dump({"password": password, "chpasswd": {"expire": False}})
    if not own:
        return with_password
    whole = MIMEMultipart(boundary="ganeti-cloud-init-part")
    for text in (with_password, own):
        # cloud-init finds the type of a plain part by its first line, as it does for a whole file.
        is_message = text.startswith(_MIME)
        whole.attach(message_from_string(text) if is_message else MIMEText(text, "plain", "utf-8"))
    return whole.as_string()


# network -------------------------------------------------------------------------------------


def _network_config(config: Config, instance: Instance) -> JsonObject:
    """Version 2, as netplan reads it: a NIC is found by its address and called eth0, eth1, ..."""
    group = config.nodes[instance.primary_node].group
    ethernets: JsonObject = {}
    vlans: JsonObject = {}
    routed: set[int] = set()
    for index, nic in enumerate(instance.nics):
        network = config.networks.get(nic.network) if nic.network else None
        ethernets[f"eth{index}"] = {
            "match": {"macaddress": nic.mac},
            "set-name": f"eth{index}",
            **_addresses(instance, nic, network, routed),
        }
        for number in _tagged_vlans(config, nic, group):
            vlans[f"eth{index}.{number}"] = {
                "id": number,
                "link": f"eth{index}",
                "dhcp4": False,
                "optional": True,
            }
    found: JsonObject = {"version": 2, "ethernets": ethernets}
    return found | ({"vlans": vlans} if vlans else {})


def _addresses(
    instance: Instance, nic: Nic, network: Network | None, routed: set[int]
) -> JsonObject:
    """The static address of a NIC in a network, else DHCP; the first gateway is the default."""
    if network is None or not nic.ip:
        return {"dhcp4": True, **_link(instance, network)}
    length = ipaddress.ip_network(network.network, strict=False).prefixlen
    found: JsonObject = {"dhcp4": False, "addresses": [f"{nic.ip}/{length}"]}
    if network.gateway and 4 not in routed:
        routed.add(4)
        found["routes"] = [{"to": "0.0.0.0/0", "via": network.gateway}]
    return found | _link(instance, network)


def _link(instance: Instance, network: Network | None) -> JsonObject:
    if network is None:
        return {}
    found: JsonObject = {}
    if network.network6:
        found["accept-ra"] = True
    if network.mtu:
        found["mtu"] = network.mtu
    if network.dns:
        found["nameservers"] = {"addresses": list(network.dns)}
        domain = instance.name.partition(".")[2]
        if domain:
            found["nameservers"]["search"] = [domain]
    return found


def _tagged_vlans(config: Config, nic: Nic, group: GroupUuid) -> list[int]:
    """VLANs that a NIC carries with their tags: ``:10:20`` of its parameter ``vlan``."""
    params: Mapping[str, object] = config.nicparams_for(nic.nicparams, nic.network, group)
    _untagged, _colon, tagged = str(params.get("vlan") or "").partition(":")
    return [int(text) for text in tagged.split(":") if text.isascii() and text.isdigit()]
