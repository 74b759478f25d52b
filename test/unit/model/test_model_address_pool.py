"""Pools of addresses: what is in them, and what a text that is not an address of theirs gives."""

from __future__ import annotations

import pytest

from ganeti import errors
from ganeti.model import address_pool
from ganeti.model.network import Network


def network(subnet: str = "198.51.100.0/29", **more: str) -> Network:
    return Network(uuid="n", name="net1", network=subnet, **more)  # type: ignore[arg-type]


def test_maps_that_were_never_written_are_free():
    assert address_pool.make_used_map(network()) == "0" * 8
    assert address_pool.make_external_map(network(ext_reservations="11")) == "11000000"


@pytest.mark.parametrize(
    ("own", "external", "besides", "expected"),
    [
        ("00000000", "10000001", (), "198.51.100.1"),
        ("01000000", "10000001", ("198.51.100.2",), "198.51.100.3"),
        ("01111110", "10000001", (), None),
        ("01111100", "10000001", ("198.51.100.6",), None),
    ],
)
def test_the_lowest_free_address(own, external, besides, expected):
    found = network(reservations=own, ext_reservations=external)
    assert address_pool.find_first_free(found, besides) == expected


def test_numbers_of_addresses_in_a_subnet_with_host_bits():
    found = network("198.51.100.13/29")
    assert address_pool.place(found, "198.51.100.8") == 0
    assert address_pool.addresses(found, "10000001") == ["198.51.100.8", "198.51.100.15"]


@pytest.mark.parametrize("text", ["198.51.100.8", "2001:db8::1", "pool", "", "198.51.100.01"])
def test_texts_that_are_no_address_of_the_network(text):
    assert not address_pool.contains(network(), text)
    with pytest.raises(errors.AddressPoolError, match="not an address of network net1"):
        address_pool.place(network(), text)
