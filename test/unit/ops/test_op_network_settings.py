"""What networks come to from their parameters, and who conflicts with them."""

from __future__ import annotations

from typing import Any

import pytest
from op_samples import config, node, put, with_instance

from ganeti import errors
from ganeti.model import address_pool, base
from ganeti.model.nic import Nic
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.network import OpNetworkAdd, OpNetworkSetParams
from ganeti.opcodes.wire import from_wire
from ganeti.ops.network import connect
from ganeti.ops.planning import network_settings

CONFIG = config(node(2))


def op(op_id: str, **params: Any) -> OpCode:
    return from_wire({"OP_ID": op_id, "reason": [], "network_name": "net1", **params})


def added(**params: Any) -> network_settings.Network:
    found = op("OP_NETWORK_ADD", **{"network": "198.51.100.0/28", **params})
    assert isinstance(found, OpNetworkAdd)
    return network_settings.make_network(CONFIG, found, "net-1")


def modified(network: network_settings.Network, **params: Any) -> network_settings.Network:
    found = op("OP_NETWORK_SET_PARAMS", **params)
    assert isinstance(found, OpNetworkSetParams)
    return network_settings.change_network(network, found)


def list_reserved(network: network_settings.Network) -> list[int]:
    """Last bytes of the addresses that no instance gets."""
    return [n for n, bit in enumerate(address_pool.make_external_map(network)) if bit == "1"]


def test_a_new_network_keeps_what_no_instance_may_have():
    found = added(gateway="198.51.100.1", add_reserved_ips=["198.51.100.5"])
    assert found.reservations == "0" * 16
    assert found.ext_reservations == "1100010000000001"


def test_host_bits_do_not_count():
    assert added(network="198.51.100.7/28", network6="2001:db8::7/64").network == "198.51.100.0/28"


@pytest.mark.parametrize(("check", "expected"), [(True, [0, 1, 2, 254, 255]), (False, [0, 255])])
def test_addresses_of_nodes_and_cluster(check, expected):
    assert list_reserved(added(network="192.0.2.0/24", conflicts_check=check)) == expected


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"network": "192.0.0.0/8"}, "from 16"),
        ({"network": "192.0.2.0/31"}, "to 30"),
        ({"gateway": "192.0.3.1"}, "192.0.3.1 is not an address"),
        ({"gateway": "198.51.100.0"}, "cannot be the gateway"),
        ({"gateway": "198.51.100.15"}, "cannot be the gateway"),
        ({"gateway6": "2001:db8::1"}, "needs an IPv6 network"),
        ({"gateway6": "2001:db9::1", "network6": "2001:db8::/64"}, "is not in 2001:db8::/64"),
        ({"add_reserved_ips": ["10.0.0.1"]}, "10.0.0.1 is not an address"),
        ({"mac_prefix": "01:00:00"}, "multicast"),
        ({"mac_prefix": "aa:00"}, "three bytes"),
    ],
)
def test_parameters_that_cannot_be(params, text):
    with pytest.raises(errors.OpPrereqError, match=text):
        added(**params)


@pytest.mark.parametrize("name", ["none", "a b", "a/b", "a,b", "a=b", "-a", "a:b", "x" * 256])
def test_names_that_cannot_be(name):
    with pytest.raises(errors.OpPrereqError, match="cannot be the name"):
        network_settings.check_name(CONFIG, name)


def test_a_name_is_used_once_and_never_a_uuid():
    of = put(CONFIG, "networks", base.replace(added(), name="lan"))
    network_settings.check_name(of, "x" * 255)
    with pytest.raises(errors.OpPrereqError, match="there is a network 'lan' already"):
        network_settings.check_name(of, "lan")
    with pytest.raises(errors.OpPrereqError, match="nor is 'none' or the form of a UUID"):
        network_settings.check_name(of, "0123abcd-0123-4567-89ab-0123456789ab")


def test_name_servers_and_mtu():
    network = added(dns=["192.0.2.53", "2001:DB8::53"], mtu=576)
    assert (network.dns, network.mtu) == (("192.0.2.53", "2001:db8::53"), 576)
    assert (added().dns, added().mtu, added(mtu=0).mtu) == (None, None, None)
    assert modified(network, dns=["none"], mtu=0) == base.replace(network, dns=None, mtu=None)
    changed = modified(network, dns=["192.0.2.54"], mtu=9000)
    assert (changed.dns, changed.mtu) == (("192.0.2.54",), 9000)
    with pytest.raises(errors.OpPrereqError, match="a name server is an address: 'x'"):
        added(dns=["x"])
    with pytest.raises(errors.OpPrereqError, match="the MTU must be 576 or more, not 575"):
        modified(network, mtu=575)


def test_an_ipv6_network_is_changed():
    network = modified(added(), network6="2001:db8::7/64", gateway6="2001:db8::1")
    assert (network.network6, network.gateway6) == ("2001:db8::/64", "2001:db8::1")
    changed = modified(network, mac_prefix="AA:bb:0C", gateway6="none")
    assert (changed.mac_prefix, changed.gateway6) == ("aa:bb:0c", None)


@pytest.mark.parametrize(
    "params",
    [
        {"gateway": "198.51.100.1"},
        {"network6": "none"},
        {"gateway6": "none"},
        {"mac_prefix": "none"},
        {"dns": []},
        {"mtu": 0},
        {"add_reserved_ips": ["198.51.100.1"]},
        {"remove_reserved_ips": ["198.51.100.1"]},
    ],
)
def test_a_change_names_a_parameter(params):
    assert network_settings.has_parameters(op("OP_NETWORK_SET_PARAMS", **params))


def test_empty_lists_of_addresses_change_nothing():
    assert not network_settings.has_parameters(op("OP_NETWORK_SET_PARAMS"))
    empty = op("OP_NETWORK_SET_PARAMS", add_reserved_ips=[], remove_reserved_ips=[])
    assert not network_settings.has_parameters(empty)


def test_another_gateway_gives_the_old_one_back():
    network = added(gateway="198.51.100.1")
    assert list_reserved(modified(network, gateway="198.51.100.2")) == [0, 2, 15]
    assert list_reserved(modified(network, gateway="none")) == [0, 15]
    assert list_reserved(modified(network, add_reserved_ips=["198.51.100.7"])) == [0, 1, 7, 15]


def test_what_is_not_given_stays():
    network = added(gateway="198.51.100.1", network6="2001:db8::/64", mac_prefix="aa:bb:cc")
    assert modified(network, mac_prefix="none") == base.replace(network, mac_prefix=None)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"remove_reserved_ips": ["198.51.100.1"]}, "must stay reserved"),
        ({"remove_reserved_ips": ["198.51.100.15"]}, "must stay reserved"),
        ({"remove_reserved_ips": ["10.0.0.1"]}, "is not an address"),
        ({"gateway": "198.51.100.9"}, "an instance uses it"),
        ({"network6": "none"}, "needs an IPv6 network"),
    ],
)
def test_changes_that_cannot_be(params, text):
    network = added(gateway="198.51.100.1", network6="2001:db8::/64", gateway6="2001:db8::1")
    network = address_pool.with_own(network, take=["198.51.100.9"])
    with pytest.raises(errors.OpPrereqError, match=text):
        modified(network, **params)


def test_the_user_hears_of_addresses_that_stay_as_they_are():
    network = address_pool.with_own(added(), take=["198.51.100.9"])
    change = op(
        "OP_NETWORK_SET_PARAMS",
        add_reserved_ips=["198.51.100.0", "198.51.100.9", "198.51.100.3"],
        remove_reserved_ips=["198.51.100.4"],
    )
    assert list(network_settings.notes(network, change)) == [  # type: ignore[arg-type]
        "IP address 198.51.100.0 is reserved already",
        "IP address 198.51.100.9 is used by an instance, which keeps it",
        "IP address 198.51.100.4 is not reserved",
    ]


def test_cards_with_addresses_of_a_network_they_are_not_in():
    network = added()
    cards = {"web1": ("198.51.100.3", None), "web2": ("198.51.100.4", "net-1")}
    state = CONFIG
    for name, (ip, uuid) in cards.items():
        state = with_instance(state, name, "node-2")
        card = Nic(uuid=name, mac="aa:00:00:00:00:02", ip=ip, network=uuid)
        item = base.replace(state.instances[f"inst-{name}"], nics=(card,))
        state = state.apply([("instances", item.uuid, item)], [], None, mtime=3.0)
    group = state.nodes["node-2"].group
    assert connect.conflicts(state, network, group) == ["web1/0"]
