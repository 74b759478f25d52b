"""Which addresses of a network are given out. Pure.

A network has two strings of 0 and 1 with one place for each address of its subnet, the first and
the last one included. A 1 in ``reservations`` is an address of a NIC, a 1 in
``ext_reservations`` one that something outside the cluster (or a gateway) uses.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable

from ganeti import errors
from ganeti.model import base
from ganeti.model.instance import Instance
from ganeti.model.network import Network

#: Prefix lengths of a pool: the whole map is in each version of the network object.
LARGEST, SMALLEST = 16, 30


def subnet(network: Network) -> ipaddress.IPv4Network:
    """The IPv4 subnet; host bits that are set in its text do not count."""
    return ipaddress.IPv4Network(network.network, strict=False)


def size(network: Network) -> int:
    """Number of all addresses."""
    return subnet(network).num_addresses


def contains(network: Network, address: str) -> bool:
    """Whether a text is an IPv4 address of the subnet."""
    try:
        return ipaddress.IPv4Address(address) in subnet(network)
    except ValueError:
        return False


def place(network: Network, address: str) -> int:
    """Number of an address, from 0.

    Raises:
        AddressPoolError: it is not in the subnet.
    """
    if not contains(network, address):
        raise errors.AddressPoolError(
            f"{address} is not an address of network {network.name} ({network.network})"
        )
    return int(ipaddress.IPv4Address(address)) - int(subnet(network).network_address)


def addresses(network: Network, bits: str) -> list[str]:
    """The addresses that are 1 in a map."""
    first = int(subnet(network).network_address)
    return [str(ipaddress.IPv4Address(first + n)) for n, bit in enumerate(bits) if bit == "1"]


# maps --------------------------------------------------------------------------------------------


def make_own_map(network: Network) -> str:
    """Map of the addresses of NICs."""
    return _complete(network, network.reservations)


def make_external_map(network: Network) -> str:
    """Map of the addresses that something else has."""
    return _complete(network, network.ext_reservations)


def _complete(network: Network, bits: str | None) -> str:
    """A map that has all places, also if it was never written."""
    return (bits or "").ljust(size(network), "0")


def make_used_map(network: Network) -> str:
    """Map of all addresses that cannot be assigned."""
    both = int(make_own_map(network), 2) | int(make_external_map(network), 2)
    return f"{both:0{size(network)}b}"


def is_own(network: Network, address: str) -> bool:
    """Whether a NIC has the address; AddressPoolError if it is not in the subnet."""
    return make_own_map(network)[place(network, address)] == "1"


def is_external(network: Network, address: str) -> bool:
    """Whether something else has the address; AddressPoolError if it is not in the subnet."""
    return make_external_map(network)[place(network, address)] == "1"


def find_first_free(network: Network, besides: Collection[str] = ()) -> str | None:
    """The lowest free address that is not among ``besides``; None when the pool is exhausted."""
    bits = make_used_map(network)
    first = int(subnet(network).network_address)
    found = bits.find("0")
    while found >= 0:
        address = str(ipaddress.IPv4Address(first + found))
        if address not in besides:
            return address
        found = bits.find("0", found + 1)
    return None


# changes -----------------------------------------------------------------------------------------


def with_own(network: Network, *, take: Iterable[str] = (), free: Iterable[str] = ()) -> Network:
    """The network with other addresses of NICs; ``take`` wins over ``free``.

    Raises:
        AddressPoolError: an address is not in the subnet.
    """
    return base.replace(
        network, reservations=_change_map(network, make_own_map(network), take, free)
    )


def with_external(
    network: Network, *, take: Iterable[str] = (), free: Iterable[str] = ()
) -> Network:
    """The network with other addresses that something else has, as :func:`with_own`."""
    bits = _change_map(network, make_external_map(network), take, free)
    return base.replace(network, ext_reservations=bits)


def _change_map(network: Network, bits: str, take: Iterable[str], free: Iterable[str]) -> str:
    result = list(bits)
    for value, wanted in (("0", free), ("1", take)):
        for address in wanted:
            result[place(network, address)] = value
    return "".join(result)


def find_used_addresses(instance: Instance | None) -> set[tuple[str, str]]:
    """(network uuid, address) of the NICs of an instance."""
    if instance is None:
        return set()
    return {(nic.network, nic.ip) for nic in instance.nics if nic.network and nic.ip}
