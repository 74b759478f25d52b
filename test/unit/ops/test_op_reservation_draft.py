"""What a reservation will look like, and what cannot be reserved."""

from __future__ import annotations

from typing import Any

import pytest
from op_samples import config, context, node, put, with_cluster, with_group

from ganeti import errors
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskMode, DiskTemplate, HypervisorName
from ganeti.model.instance import Instance, Reservation
from ganeti.model.network import Network
from ganeti.opcodes.devices import DiskParams, NicParams
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.hidden import Private, Secret
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.planning import reservation_draft
from ganeti.ops.planning.reservation_draft import Drafted

LAN = Network(
    uuid="lan-uuid",
    name="lan",
    network="198.51.100.0/29",
    reservations="0" * 8,
    ext_reservations="10000001",
)


def cluster() -> Config:
    """Group ``rack1`` is connected to the network ``lan`` and counts spindles."""
    of = put(config(node(2), node(3, "group-rack1")), "networks", LAN)
    bridged = {"mode": "bridged", "link": "br0", "vlan": ""}
    return with_group(
        of, "rack1", networks={LAN.uuid: bridged}, ndparams={"exclusive_storage": True}
    )


def create(**params: Any) -> OpInstanceCreate:
    values = {"instance_name": "Web1", "disks": [], "nics": [], **params}
    return OpInstanceCreate(**{"mode": InstCreateMode.CREATE, **values})


def draft(*uuids: str, of: Config | None = None, **params: Any) -> Drafted:
    ctx = context(cluster() if of is None else of)
    nodes = [ctx.config.nodes[uuid] for uuid in uuids]
    kept = Reservation(owner="alice")
    return reservation_draft.draft(ctx, create(**params), "uuid-1", nodes, kept)


def expect_refusal(text: str) -> Any:
    return pytest.raises(
        errors.OpPrereqError,
        match=text,
        check=lambda caught: caught.args[1] == errors.ErrorCode.INVAL,
    )


# what cannot be reserved --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"mode": InstCreateMode.IMPORT}, "creation mode import cannot be reserved; only create"),
        (
            {"disks": [DiskParams(size=1), DiskParams(size=1, adopt="old")]},
            "a disk that exists cannot be reserved; adopt it with gnt-instance add without",
        ),
        (
            {"osparams_secret": {"password": Secret("x")}},
            "secret OS parameters are stored nowhere, .* give them with gnt-instance add --commit",
        ),
    ],
)
def test_what_cannot_be_reserved(given: dict[str, Any], text: str) -> None:
    with expect_refusal(text):
        reservation_draft.check_request(create(**given))
    reservation_draft.check_request(create(disks=[DiskParams(size=1)]))


# the instance -------------------------------------------------------------------------------------


def test_a_reservation_that_says_almost_nothing() -> None:
    found = draft(instance_name="")
    instance = found.instance
    assert (instance.uuid, instance.name, instance.primary_node) == ("uuid-1", "", "")
    assert (instance.os, instance.hypervisor) == ("", HypervisorName.FAKE)
    assert (instance.forthcoming, instance.nics, instance.disks) == (True, (), ())
    assert instance.reservation == Reservation(owner="alice")
    assert found.disks == []


def test_a_reservation_that_says_everything() -> None:
    found = draft(
        "node-2",
        os_type="noop",
        disk_template=DiskTemplate.FILE,
        disks=[DiskParams(size=2048)],
        nics=[NicParams()],
        beparams={"memory": 512},
        osparams={"a": "b"},
        osparams_private={"c": Private("d")},
        tags=["two", "one", "two"],
    )
    instance, [disk] = found.instance, found.disks
    assert (instance.name, instance.primary_node, instance.os) == ("web1", "node-2", "noop")
    assert instance.beparams == {"minmem": 512, "maxmem": 512}
    assert (instance.osparams, instance.osparams_private) == ({"a": "b"}, {"c": "d"})
    assert instance.tags == ("one", "two")
    assert len(instance.nics) == 1
    assert instance.disks == (disk.uuid,)
    assert (disk.forthcoming, disk.nodes, disk.dev_type) == (True, ("node-2",), DiskTemplate.FILE)
    assert "/web1/" in disk.logical_id[1]
    assert instance.reservation is not None
    assert instance.reservation.disk_template is DiskTemplate.FILE


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"tags": ["a b"]}, errors.TagError, "'a b' is not a tag"),
        ({"instance_name": "a b"}, errors.OpPrereqError, "cannot be the name of an instance"),
        ({"hypervisor": "kvm"}, errors.OpPrereqError, "kvm is not enabled"),
        ({"disk_template": DiskTemplate.RBD}, errors.OpPrereqError, "rbd is not enabled"),
    ],
)
def test_a_wrong_reservation(given: dict[str, Any], error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        draft(**given)


def test_a_place_is_bound_by_the_policy_of_its_group() -> None:
    small = {"beparams": {"memory": 1}, "disk_template": DiskTemplate.DISKLESS}
    of = with_cluster(cluster(), enabled_disk_templates=("file", "diskless"))
    with expect_refusal("memory-size 1 is not between"):
        draft("node-2", of=of, nics=[NicParams()], **small)
    assert draft("node-2", of=of, nics=[NicParams()], ignore_ipolicy=True, **small).disks == []
    assert draft(of=of, **small).instance.beparams == {"minmem": 1, "maxmem": 1}


def test_the_hypervisor_that_a_reservation_gets() -> None:
    ctx = context(with_cluster(config(), enabled_hypervisors=("xen-pvm", "fake")))
    bare = Instance(uuid="u")
    assert reservation_draft.hypervisor_of(ctx, bare) == "xen-pvm"
    own = base.replace(bare, hypervisor=HypervisorName.FAKE)
    assert reservation_draft.hypervisor_of(ctx, own) == "fake"


# NICs ---------------------------------------------------------------------------------------------


def test_without_a_node_a_group_that_can_have_the_nics_is_enough() -> None:
    lan = [NicParams(network="lan", ip="pool")]
    [nic] = draft(nics=lan).instance.nics
    assert (nic.network, nic.ip) == (LAN.uuid, "198.51.100.1")
    [nic] = draft("node-3", nics=lan, ignore_ipolicy=True).instance.nics
    assert nic.network == LAN.uuid
    assert len(draft(nics=lan, group_name="rack1").instance.nics) == 1


def test_without_a_group_that_can_have_the_nics_the_last_one_says_why() -> None:
    of = with_group(cluster(), "rack2")
    lan = [NicParams(network="lan", ip="pool")]
    assert len(draft(of=of, nics=lan).instance.nics) == 1
    with pytest.raises(errors.OpPrereqError, match="not connected to node group default"):
        draft(of=of, nics=lan, group_name="default")
    with pytest.raises(errors.OpPrereqError, match="not connected to node group rack2"):
        draft(of=put(with_group(config(), "rack2"), "networks", LAN), nics=lan)
    with pytest.raises(errors.OpPrereqError, match="not connected to node group default"):
        draft("node-2", of=of, nics=lan)


def test_an_address_that_belongs_to_a_network_can_be_had_without_checks() -> None:
    there = {"nics": [NicParams(ip="198.51.100.4")], "group_name": "rack1"}
    with pytest.raises(errors.OpPrereqError, match="belongs to network lan"):
        draft(**there)
    for more in ({}, {"group_name": None}):
        [nic] = draft(**{**there, **more, "conflicts_check": False}).instance.nics
        assert (nic.ip, nic.network) == ("198.51.100.4", None)


# disks --------------------------------------------------------------------------------------------


def test_a_disk_without_a_place_keeps_what_was_asked_for() -> None:
    item = DiskParams(
        size=2048,
        mode=DiskMode.RO,
        name="data",
        vg="fast",
        metavg="meta",
        access="userspace",
        provider="san",
        ext={"pool": 7},
    )
    [disk, bare] = draft(disks=[item, DiskParams(name="none")]).disks
    assert (disk.dev_type, disk.iv_name, disk.size, disk.name) == (None, "disk/0", 2048, "data")
    assert (disk.mode, disk.forthcoming, disk.nodes) == (DiskMode.RO, True, ())
    wanted = {"vg": "fast", "metavg": "meta", "access": "userspace", "provider": "san", "pool": "7"}
    assert disk.params == wanted
    assert (bare.iv_name, bare.size, bare.mode) == ("disk/1", 0, DiskMode.RW)
    assert (bare.name, bare.params, bare.spindles) == (None, None, None)
    # What has to be requested later is the same again.
    again = reservation_draft.request_of(disk).to_wire()
    assert again == {**item.to_wire(), "pool": "7"}
    assert reservation_draft.request_of(bare).to_wire() == {"mode": DiskMode.RW}


def test_parameters_of_a_disk_with_a_place_are_not_asked_for_again() -> None:
    disk = Disk(uuid="d", logical_id=("xenvg", "v"), size=8, params={"vg": "fast", "pool": "7"})
    assert reservation_draft.request_of(disk).to_wire() == {"size": 8, "mode": DiskMode.RW}


def test_disks_without_a_place_have_the_template_that_is_asked_for() -> None:
    [disk] = draft(disks=[DiskParams(size=8)], disk_template=DiskTemplate.FILE).disks
    assert disk.dev_type is DiskTemplate.FILE
    of = with_cluster(cluster(), enabled_disk_templates=("file", "diskless"))
    with expect_refusal("a diskless instance has no disks"):
        draft(of=of, disks=[DiskParams(size=8)], disk_template=DiskTemplate.DISKLESS)
    assert draft("node-2", of=of, nics=[NicParams()], disk_template="diskless").disks == []


@pytest.mark.parametrize("given", [{"file_driver": "loop"}, {"file_storage_dir": "a"}])
def test_a_directory_needs_a_node(given: dict[str, Any]) -> None:
    with expect_refusal("a file storage directory or driver needs a node; name one with --node"):
        draft(disks=[DiskParams(size=8)], **given)
    disks = {"disks": [DiskParams(size=2048)], "nics": [NicParams()]}
    found = draft("node-2", disk_template=DiskTemplate.FILE, **disks, **given)
    driver, path = found.disks[0].logical_id
    assert driver == "loop"
    assert ("/a/web1/" in path) == ("file_storage_dir" in given)


def test_spindles_where_some_node_counts_them() -> None:
    disks = [DiskParams(size=8), DiskParams(size=8, spindles=2)]
    assert [disk.spindles for disk in draft(disks=disks).disks] == [None, 2]
    assert draft(disks=disks, group_name="rack1").disks[1].spindles == 2
    with expect_refusal("disk 1: spindles cannot be specified"):
        draft(disks=disks, group_name="default")
    with expect_refusal("disk 0: spindles cannot be specified"):
        draft(of=config(node(2)), disks=disks[1:])


def test_spindles_on_nodes_that_are_known() -> None:
    of, item = cluster(), DiskParams(size=8, spindles=2)
    reservation_draft.check_spindles(of, 0, item, ["node-3"])
    reservation_draft.check_spindles(of, 0, DiskParams(size=8), ["node-2"])
    with expect_refusal("disk 4: spindles cannot be specified"):
        reservation_draft.check_spindles(of, 4, item, ["node-2"])
