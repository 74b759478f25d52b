"""A commit may add what its reservation leaves open, and may change nothing."""

from __future__ import annotations

from typing import Any

import pytest
from op_samples import config, node, put, with_cluster, with_instance

from ganeti import errors
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate, HypervisorName
from ganeti.model.instance import Instance
from ganeti.model.nic import Nic
from ganeti.opcodes.devices import DiskParams, NicParams
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.hidden import Private
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.planning import commit_request

MAC, IP = "aa:00:00:00:00:09", "192.0.2.99"
OPEN = Instance(uuid="uuid-1", name="web1", forthcoming=True)
FULL = base.replace(
    OPEN,
    os="noop",
    hypervisor=HypervisorName.FAKE,
    beparams={"minmem": 64, "maxmem": 128},
    hvparams={"migration_mode": "live"},
    osparams={"a": "1"},
    osparams_private={"b": "2"},
    tags=("one", "two"),
    nics=(Nic(uuid="n", mac=MAC, ip=IP, nicparams={"link": "br7"}),),
)


def commit(**params: Any) -> OpInstanceCreate:
    values = {"disks": [], "nics": [], "commit": True, **params}
    return OpInstanceCreate(instance_name="web1", mode=InstCreateMode.CREATE, **values)


def complete(reserved: Instance, of: Config | None = None, **params: Any) -> Instance:
    return commit_request.complete(of or config(), reserved, commit(**params))


AGAIN: dict[str, Any] = {
    "os_type": "noop",
    "hypervisor": "fake",
    "beparams": {"minmem": 64, "maxmem": 128, "vcpus": "default"},
    "hvparams": {"migration_mode": "live"},
    "osparams": {"a": "1"},
    "osparams_private": {"b": Private("2")},
    "tags": ["two", "one", "two"],
    "nics": [NicParams(mac=MAC, ip=IP, link="br7")],
}


def test_a_commit_that_says_nothing_changes_nothing() -> None:
    assert complete(FULL) == FULL
    assert complete(FULL, **AGAIN) == FULL


def test_what_is_open_is_added() -> None:
    given = {key: value for key, value in AGAIN.items() if key not in ("beparams", "nics")}
    found = complete(OPEN, **given)
    assert (found.os, found.hypervisor, found.tags) == ("noop", "fake", ("one", "two"))
    assert found.hvparams == {"migration_mode": "live"}
    assert (found.osparams, found.osparams_private) == ({"a": "1"}, {"b": "2"})
    more = complete(FULL, osparams={"c": "3", "d": "default"})
    assert more == base.replace(FULL, osparams={"a": "1", "c": "3"})


def test_the_hypervisor_is_the_first_of_the_cluster_if_nobody_says_one() -> None:
    of = with_cluster(config(), enabled_hypervisors=("xen-pvm", "fake"))
    assert complete(OPEN, of).hypervisor == "xen-pvm"
    assert complete(OPEN, of, hypervisor="fake").hypervisor == "fake"
    assert complete(FULL, of).hypervisor == "fake"
    assert complete(OPEN).os == ""


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"os_type": "debian"}, "OS of reservation web1 is noop, not debian"),
        ({"hypervisor": "kvm"}, "hypervisor of reservation web1 is fake, not kvm"),
        ({"beparams": {"memory": 64}}, "backend parameter maxmem of .* is 128, not 64"),
        ({"beparams": {"vcpus": 9}}, "backend parameter vcpus of .* is 1, not 9"),
        ({"tags": ["one"]}, "set of tags of reservation web1 is one, two, not one"),
        (
            {"hvparams": {"migration_mode": "non-live"}},
            "hypervisor parameter migration_mode of .* is live, not non-live",
        ),
        ({"osparams": {"a": "2"}}, "OS parameter a of reservation web1 is 1, not 2"),
        ({"osparams_private": {"b": Private("3")}}, "OS parameter b of reservation web1"),
        ({"nics": [NicParams(), NicParams()]}, "number of NICs of reservation web1 is 1, not 2"),
        ({"nics": [NicParams(mac="aa:00:00:00:00:08")]}, f"mac of NIC 0 of .* is {MAC}, not aa"),
        ({"nics": [NicParams(ip="192.0.2.98")]}, f"ip of NIC 0 of .* is {IP}, not 192.0.2.98"),
        ({"nics": [NicParams(link="br8")]}, "link of NIC 0 of reservation web1 is br7, not br8"),
    ],
)
def test_what_is_reserved_is_not_changed(given: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.OpPrereqError, match=f"^..the {text}") as caught:
        complete(FULL, **given)
    assert "gnt-instance modify web1 changes it" in errors.text(caught.value)
    assert caught.value.args[1] == errors.ErrorCode.INVAL


def test_an_address_that_was_chosen_may_be_asked_for_again() -> None:
    for word in ("auto", "generate"):
        assert complete(FULL, nics=[NicParams(mac=word)]) == FULL
    assert complete(FULL, nics=[NicParams(ip="pool", link="default", mode="auto")]) == FULL


# places -------------------------------------------------------------------------------------------


def check_place(of: Config, **params: Any) -> None:
    commit_request.check_place(of, of.instances["inst-web1"], commit(**params))


def mirrored() -> Config:
    of = with_instance(config(node(2), node(3), node(4)), "web1", "node-2", "node-3")
    place = ("node-2", "node-3", 11000, 0, 0, "secret")
    of = put(of, "disks", base.replace(of.disks["disk-web1"], logical_id=place))
    return put(of, "instances", base.replace(of.instances["inst-web1"], forthcoming=True))


def test_nodes_and_disks_may_be_named_again() -> None:
    disks = [DiskParams(size=2048)]
    check_place(mirrored(), pnode="node2", snode="node3.example.com", disks=disks)
    check_place(
        mirrored(), pnode_uuid="node-2", snode_uuid="node-3", disk_template=DiskTemplate.DRBD
    )
    check_place(mirrored(), pnode="node4", pnode_uuid="node-2")
    check_place(mirrored())


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"pnode": "node3"}, r"node of .* is node2\.example\.com, not node3\.example\.com"),
        ({"pnode_uuid": "node-4"}, r"node of .* is node2\.example\.com, not node4\.example\.com"),
        ({"snode": "node2"}, r"node of .* is node3\.example\.com, not node2\.example\.com"),
        ({"snode_uuid": "node-4"}, r"node of .* is node3\.example\.com, not node4\.example\.com"),
        ({"disk_template": DiskTemplate.FILE}, "disk template of .* is drbd, not file"),
        ({"disks": [DiskParams(size=4)]}, "list of disk sizes of .* is 2048, not 4"),
        (
            {"disks": [DiskParams(size=2048), DiskParams(size=8)]},
            "list of disk sizes of .* is 2048, not 2048, 8",
        ),
    ],
)
def test_another_place_is_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.OpPrereqError, match=text):
        check_place(mirrored(), **given)


def test_without_a_place_every_place_will_do() -> None:
    of = mirrored()
    bare = base.replace(of.instances["inst-web1"], primary_node="", disks=())
    of = put(of, "instances", bare)
    disks = [DiskParams(size=4)]
    check_place(of, pnode="node4", disk_template=DiskTemplate.FILE, disks=disks)
    lost = put(of, "disks", Disk(uuid="d", forthcoming=True, size=8))
    lost = put(lost, "instances", base.replace(bare, disks=("d",)))
    with pytest.raises(errors.OpPrereqError, match=r"list of disk sizes of .* is 8, not 4"):
        check_place(lost, disks=disks)
