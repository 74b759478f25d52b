"""What a guest reads at its start, as cloud-init parses it."""

from __future__ import annotations

import email
import json
from typing import Any

import pytest
from op_samples import change, config, put, with_instance

from ganeti.model import base
from ganeti.model.cloud_init import CloudInit
from ganeti.model.config import Config
from ganeti.model.network import Network
from ganeti.model.nic import Nic
from ganeti.ops import cloud_init

NAME = "web1.example.com"
BACK = Network(uuid="net-back", name="back", network="192.0.2.0/25", gateway="192.0.2.1")  # type: ignore[arg-type]
FRONT = Network(
    uuid="net-front",  # type: ignore[arg-type]
    name="front",
    network="198.51.100.0/24",
    gateway="198.51.100.254",
    dns=("198.51.100.53", "2001:db8::53"),
    mtu=9000,
)


def make(*nics: dict[str, Any], of: Config | None = None, **data: Any) -> dict[str, str]:
    """Files of an instance with these NICs; its networks are known."""
    one = of or config()
    [master] = one.nodes
    one = with_instance(put(one, "networks", BACK, FRONT), NAME, master)
    made = tuple(
        Nic(uuid=f"nic-{index}", mac=f"aa:00:00:00:00:0{index}", **nic)
        for index, nic in enumerate(nics)
    )
    one = change(one, NAME, nics=made, cloud_init=CloudInit(**data))
    return cloud_init.make_files(one, one.instances[f"inst-{NAME}"])  # type: ignore[index]


def configure(*nics: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(make(*nics)["network-config"])
    assert found["version"] == 2
    return found


def test_address_of_a_network_comes_with_length_gateway_dns_and_mtu() -> None:
    assert configure({"network": "net-front", "ip": "198.51.100.7"})["ethernets"] == {
        "eth0": {
            "match": {"macaddress": "aa:00:00:00:00:00"},
            "set-name": "eth0",
            "dhcp4": False,
            "addresses": ["198.51.100.7/24"],
            "routes": [{"to": "0.0.0.0/0", "via": "198.51.100.254"}],
            "mtu": 9000,
            "nameservers": {
                "addresses": ["198.51.100.53", "2001:db8::53"],
                "search": ["example.com"],
            },
        }
    }


def test_only_the_first_gateway_is_the_default_route() -> None:
    found = configure(
        {"network": "net-back", "ip": "192.0.2.9"}, {"network": "net-front", "ip": "198.51.100.7"}
    )["ethernets"]
    assert found["eth0"]["addresses"] == ["192.0.2.9/25"]
    assert found["eth0"]["routes"] == [{"to": "0.0.0.0/0", "via": "192.0.2.1"}]
    assert "mtu" not in found["eth0"]
    assert "nameservers" not in found["eth0"]
    assert "routes" not in found["eth1"]


def test_nic_without_an_address_of_a_network_asks_by_dhcp() -> None:
    found = configure({}, {"network": "net-front"}, {"ip": "203.0.113.5"})["ethernets"]
    assert [nic["dhcp4"] for nic in found.values()] == [True, True, True]
    assert not any("addresses" in nic for nic in found.values())
    assert found["eth1"]["mtu"] == 9000


def test_subnet_of_ipv6_is_learned_from_routers() -> None:
    six = base.replace(BACK, uuid="net-six", name="six", network6="2001:db8::/64")
    one = put(config(), "networks", six)
    text = make({"network": "net-six", "ip": "192.0.2.9"}, {}, of=one)["network-config"]
    found = json.loads(text)["ethernets"]
    assert found["eth0"]["accept-ra"] is True
    assert "accept-ra" not in found["eth1"]


@pytest.mark.parametrize(
    ("vlan", "numbers"), [(":10:20", [10, 20]), (".5:10", [10]), (".5", []), ("", []), (None, [])]
)
def test_tagged_vlans_are_interfaces_without_addresses(vlan: str, numbers: list[int]) -> None:
    found = configure({}, {"nicparams": {"mode": "openvswitch", "vlan": vlan}})
    assert found.get("vlans", {}) == {
        f"eth1.{number}": {"id": number, "link": "eth1", "dhcp4": False, "optional": True}
        for number in numbers
    }


def test_own_network_configuration_takes_the_place_of_all_this() -> None:
    assert make({}, network_config="version: 1\n")["network-config"] == "version: 1\n"


def test_instance_without_data_has_no_files() -> None:
    one = with_instance(config(), NAME, next(iter(config().nodes)))
    assert cloud_init.make_files(one, one.instances[f"inst-{NAME}"]) == {}  # type: ignore[index]


def test_changed_data_are_a_new_instance_to_the_guest() -> None:
    before, after = (json.loads(make(generation=n)["meta-data"]) for n in (1, 2))
    assert before["local-hostname"] == after["local-hostname"] == NAME
    assert before["instance-id"] != after["instance-id"]


def test_password_is_vendor_data_of_its_own() -> None:
    text = make(private={"password_hash": "$6$a$b"})["vendor-data"]
    assert text.startswith("#cloud-config\n")
    assert json.loads(text.partition("\n")[2])["password"] == "$6$a$b"


@pytest.mark.parametrize(
    "own",
    [
        "#cloud-config\npackages: [vim]\n",
        "#cloud-config-archive\n- '#!/bin/sh'\n",
        "#include-once\nhttp://192.0.2.1/x\n",
        "#!/bin/sh\ntrue\n",
    ],
)
def test_password_goes_beside_vendor_data_whose_type_cloud_init_finds(own: str) -> None:
    """It looks at the first line of parts of the type text/plain, and only of those."""
    text = make(private={"password_hash": "$6$a$b", "vendor_data": own})["vendor-data"]
    whole, password, other = email.message_from_string(text).walk()
    assert whole.is_multipart()
    assert {password.get_content_type(), other.get_content_type()} == {"text/plain"}
    assert b"$6$a$b" in password.get_payload(decode=True)  # type: ignore[operator]
    assert other.get_payload(decode=True) == own.encode()


def test_password_goes_beside_vendor_data_of_several_parts() -> None:
    own = (
        'Content-Type: multipart/mixed; boundary="b"\nMIME-Version: 1.0\n\n'
        "--b\nContent-Type: text/x-shellscript\n\n#!/bin/sh\ntrue\n--b--\n"
    )
    text = make(private={"password_hash": "$6$a$b", "vendor_data": own})["vendor-data"]
    parts = [part for part in email.message_from_string(text).walk() if not part.is_multipart()]
    assert [part.get_content_type() for part in parts] == ["text/plain", "text/x-shellscript"]
