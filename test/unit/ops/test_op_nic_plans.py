"""NICs as they will be: which network, address, MAC address, name and parameters."""

from __future__ import annotations

import re
from typing import Any

import pytest
from op_samples import config, context, node, put, with_instance

from ganeti import errors
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.network import Network
from ganeti.model.nic import Nic
from ganeti.opcodes.devices import NicParams
from ganeti.ops.operation import Context
from ganeti.ops.planning import nics

MAC = "aa:00:00:00:00:09"
#: A network of six addresses for instances; one is reserved for something else.
LAN = Network(
    uuid="lan-uuid",
    name="lan",
    network="198.51.100.0/29",
    mac_prefix="52:54:00",
    reservations="0" * 8,
    ext_reservations="11000001",
)
FAR = base.replace(LAN, uuid="far-uuid", name="far", network="203.0.113.0/29", mac_prefix=None)
ROUTED = {"mode": "routed", "link": "table1", "vlan": ""}


def cluster() -> Config:
    """The network ``lan`` is connected to the only group, ``far`` is not."""
    of = put(config(node(2)), "networks", LAN, FAR)
    [group] = of.groups.values()
    return put(of, "nodegroups", base.replace(group, networks={LAN.uuid: ROUTED}))


def group_of(ctx: Context) -> Any:
    [group] = ctx.config.groups
    return group


def make_nic(ctx: Context | None = None, *, check_conflicts: bool = True, **given: Any) -> Nic:
    ctx = ctx or context(cluster())
    item = NicParams(**given)
    return nics.make_nic(ctx, 3, item, group_of(ctx), check_conflicts=check_conflicts)


def change_nic(nic: Nic, ctx: Context | None = None, **given: Any) -> Nic:
    ctx = ctx or context(cluster())
    return nics.change_nic(ctx, 3, nic, NicParams(**given), group_of(ctx))


def expect_refusal(text: str, code: errors.ErrorCode = errors.ErrorCode.INVAL) -> Any:
    return pytest.raises(
        errors.OpPrereqError, match=text, check=lambda caught: caught.args[1] == code
    )


# several ------------------------------------------------------------------------------------------


def test_how_many_nics_an_instance_has() -> None:
    ctx = context(cluster())
    assert len(nics.all_new(ctx, [NicParams()] * 8, group_of(ctx))) == 8
    with expect_refusal("an instance has at most 8 NICs, not 9"):
        nics.all_new(ctx, [NicParams()] * 9, group_of(ctx))


def test_two_nics_do_not_share_an_address() -> None:
    ctx, two = context(cluster()), errors.ErrorCode.NOTUNIQUE
    with expect_refusal(f"MAC address {MAC} is given to 2 NICs", two):
        nics.all_new(ctx, [NicParams(mac=MAC)] * 2, group_of(ctx))
    same = NicParams(network="lan", ip="198.51.100.3")
    with expect_refusal("IP address 198.51.100.3 is given to 2 NICs", two):
        nics.all_new(ctx, [same] * 2, group_of(ctx))


def test_an_address_of_no_network_may_be_given_to_two() -> None:
    ctx = context(cluster())
    same = NicParams(ip="192.0.2.99")
    found = nics.all_new(ctx, [same] * 2, group_of(ctx))
    assert [nic.ip for nic in found] == ["192.0.2.99"] * 2


def test_without_checks_for_conflicts_an_address_of_a_network_can_be_had() -> None:
    ctx = context(cluster())
    item = NicParams(ip="198.51.100.4")
    [nic] = nics.all_new(ctx, [item], group_of(ctx), check_conflicts=False)
    assert (nic.ip, nic.network) == ("198.51.100.4", None)
    with expect_refusal("belongs to network lan", errors.ErrorCode.STATE):
        nics.all_new(ctx, [item], group_of(ctx))


# MAC addresses ------------------------------------------------------------------------------------


def test_a_mac_address_has_the_prefix_of_the_network_or_cluster() -> None:
    prefix = cluster().cluster.mac_prefix
    assert re.fullmatch(f"{prefix}(:[0-9a-f]{{2}}){{3}}", make_nic().mac)
    assert re.fullmatch(f"{prefix}(:[0-9a-f]{{2}}){{3}}", make_nic(mac="generate").mac)
    assert make_nic(network="lan", ip="pool").mac.startswith("52:54:00:")


def test_a_given_mac_address_is_taken_in_lower_case_and_held() -> None:
    ctx = context(cluster())
    assert make_nic(ctx, mac=MAC.upper()).mac == MAC
    other = context(ctx.config, job_id=8)
    other.claims = ctx.claims
    with pytest.raises(errors.ReservationError, match="is being used by job 7"):
        make_nic(other, mac=MAC)


def test_a_mac_address_of_another_instance_is_refused() -> None:
    ctx = context(with_instance(cluster(), "web1", "node-2"))
    with pytest.raises(errors.ReservationError, match="is used in the cluster"):
        make_nic(ctx, mac="aa:00:00:00:00:01")
    with expect_refusal("NIC 3: 'aa:00' is not a MAC address"):
        make_nic(ctx, mac="aa:00")


def test_a_nic_keeps_its_mac_address_until_another_one_is_asked_for() -> None:
    ctx = context(with_instance(cluster(), "web1", "node-2"))
    [nic] = ctx.config.instances["inst-web1"].nics
    assert change_nic(nic, ctx).mac == nic.mac
    assert change_nic(nic, ctx, mac=nic.mac.upper()).mac == nic.mac
    assert change_nic(nic, ctx, mac=MAC).mac == MAC
    assert change_nic(nic, ctx, mac="generate").mac not in (nic.mac, "generate")


# names --------------------------------------------------------------------------------------------


def test_names_of_nics() -> None:
    named = make_nic(name="x" * 128)
    assert named.name == "x" * 128
    assert change_nic(named).name == "x" * 128
    assert change_nic(named, name="none").name is None
    assert change_nic(named, name="").name is None
    with expect_refusal("NIC 3: 'x{129}' cannot be its name: up to 128 printable characters"):
        make_nic(name="x" * 129)


# parameters ---------------------------------------------------------------------------------------


def test_parameters_that_are_not_given_stay() -> None:
    nic = make_nic(mode="openvswitch", link="br7", vlan=".7")
    assert change_nic(nic, vlan=".8").nicparams == {
        "mode": "openvswitch",
        "link": "br7",
        "vlan": ".8",
    }
    assert change_nic(nic, vlan="default").nicparams == {"mode": "openvswitch", "link": "br7"}


def test_a_network_sets_the_parameters_of_its_nics() -> None:
    nic = make_nic(mode="routed", link="t", ip="192.0.2.99")
    inside = change_nic(nic, network="lan", ip="pool")
    assert (inside.network, inside.nicparams) == (LAN.uuid, {})
    with expect_refusal(
        "NIC 3: link is set by network lan; omit it, or remove .* with network=none"
    ):
        change_nic(inside, link="br1")
    with expect_refusal("NIC 3: link, mode are set by network lan; omit them, or remove"):
        make_nic(network="lan", link="br1", mode="bridged", ip="pool")
    assert change_nic(inside, link="default").nicparams == {}
    outside = change_nic(inside, network="none", link="br1", ip="none")
    assert (outside.network, outside.nicparams, outside.ip) == (None, {"link": "br1"}, None)


def test_a_nic_that_is_routed_needs_an_address() -> None:
    with expect_refusal("NIC 3: mode routed needs an IP address"):
        make_nic(mode="routed", link="t")
    with expect_refusal("NIC 3: mode routed needs an IP address"):
        make_nic(network="lan")  # as the network is connected
    nic = make_nic(mode="routed", link="t", ip="192.0.2.99")
    with expect_refusal("NIC 3: mode routed needs an IP address"):
        change_nic(nic, ip="none")


def test_a_network_that_cannot_be_used() -> None:
    with expect_refusal(
        "NIC 3: network far is not connected to node group default; see gnt-network connect",
        errors.ErrorCode.STATE,
    ):
        make_nic(network="far", ip="pool")
    with expect_refusal("nowhere", errors.ErrorCode.NOENT):
        make_nic(network="nowhere", ip="pool")


# addresses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ip", ["192.0.2.99", "2001:db8::7"])
def test_an_address_of_no_network_is_taken_as_it_is(ip: str) -> None:
    nic = make_nic(ip=ip)
    assert nic.ip == ip
    assert change_nic(nic).ip == ip
    assert change_nic(nic, ip="none").ip is None
    assert change_nic(nic, ip="").ip is None


def test_what_is_not_an_address() -> None:
    with expect_refusal("NIC 3: '192.0.2' is not an IP address"):
        make_nic(ip="192.0.2")
    with expect_refusal(
        "NIC 3: ip=pool takes an address from a network; name it with network=NAME"
    ):
        make_nic(ip="pool")


def test_the_pool_gives_the_lowest_address_that_is_free() -> None:
    ctx = context(cluster())
    assert [make_nic(ctx, network="lan", ip="pool").ip for _ in range(5)] == [
        f"198.51.100.{last}" for last in range(2, 7)
    ]
    with expect_refusal(
        r"NIC 3: network lan \(198.51.100.0/29\) has no free address left", errors.ErrorCode.NORES
    ):
        make_nic(ctx, network="lan", ip="pool")


def test_an_address_must_be_of_the_network() -> None:
    assert make_nic(network="lan", ip="198.51.100.6").ip == "198.51.100.6"
    with expect_refusal(
        r"NIC 3: 192.0.2.99 is not an address of network lan \(198.51.100.0/29\); give one of it,"
    ):
        make_nic(network="lan", ip="192.0.2.99")


def test_an_address_that_is_kept_for_something_else() -> None:
    with pytest.raises(errors.ReservationError, match="reserved for something outside"):
        make_nic(network="lan", ip="198.51.100.1")
    assert make_nic(network="lan", ip="198.51.100.1", check_conflicts=False).ip == "198.51.100.1"


def test_an_address_that_does_not_change_is_not_asked_for_again() -> None:
    ctx = context(cluster())
    nic = make_nic(ctx, network="lan", ip="198.51.100.3")
    card = base.replace(nic, uuid="card")
    of = with_instance(ctx.config, "web1", "node-2")
    of = put(of, "instances", base.replace(of.instances["inst-web1"], nics=(card,)))
    of = put(of, "networks", base.replace(LAN, reservations="00010000"))
    assert change_nic(card, context(of), name="lan0") == base.replace(card, name="lan0")
    with pytest.raises(errors.ReservationError, match="is used by instance web1"):
        make_nic(context(of), network="lan", ip="198.51.100.3")


def test_an_address_of_a_network_belongs_into_it() -> None:
    with expect_refusal(
        "NIC 3: 198.51.100.4 belongs to network lan, the NIC does not; add network=lan, or use"
        " --no-conflicts-check",
        errors.ErrorCode.STATE,
    ):
        make_nic(ip="198.51.100.4")
    assert make_nic(ip="203.0.113.4").ip == "203.0.113.4"  # the group does not use that network


def test_a_network_that_was_removed_is_in_nobodys_way() -> None:
    of = cluster()
    [group] = of.groups.values()
    of = put(of, "nodegroups", base.replace(group, networks={"gone": ROUTED, LAN.uuid: ROUTED}))
    assert make_nic(context(of), ip="192.0.2.99").ip == "192.0.2.99"
    with expect_refusal("belongs to network lan", errors.ErrorCode.STATE):
        make_nic(context(of), ip="198.51.100.4")
