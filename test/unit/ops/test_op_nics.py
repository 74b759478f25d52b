"""What is stored of a NIC, in a cluster of one process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from one_process import OneProcess

from ganeti import errors
from ganeti.opcodes.cluster import OpClusterSetParams
from ganeti.opcodes.devices import NicChange, NicParams
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.instance import OpInstanceRemove, OpInstanceSetParams
from ganeti.opcodes.instance_create import OpInstanceCreate

WEB = "web.example.com"


@pytest.fixture(scope="module")
def started_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneProcess]:
    made = OneProcess(tmp_path_factory.mktemp("nics") / "cluster", count=1)
    yield made
    made.close()


@pytest.fixture
def cluster(started_cluster: OneProcess) -> Iterator[OneProcess]:
    yield started_cluster
    for instance in list(started_cluster.config.instances.values()):
        started_cluster.run(OpInstanceRemove(instance_name=instance.handle))


def add(cluster: OneProcess, **card: Any) -> None:
    cluster.run(
        OpInstanceCreate(
            instance_name=WEB,
            mode=InstCreateMode.CREATE,
            disks=[],
            nics=[NicParams(**card)],
            os_type="noop",
            disk_template="diskless",
            pnode="node1.example.com",
            start=False,
        )
    )


def read_nic(cluster: OneProcess) -> dict[str, Any]:
    [nic] = cluster.instance(WEB).nics
    return nic.nicparams


@pytest.mark.parametrize("key", ["bridge", "link", "mode", "vlan"])
@pytest.mark.parametrize("word", ["auto", "default"])
def test_a_card_follows_the_default_of_the_cluster(
    cluster: OneProcess, key: str, word: str
) -> None:
    add(cluster, **{key: word})
    assert read_nic(cluster) == {}


@pytest.mark.parametrize("word", ["auto", "default"])
def test_a_card_goes_back_to_the_default_of_the_cluster(cluster: OneProcess, word: str) -> None:
    add(cluster, mode="openvswitch", bridge="br7", vlan=".7")
    assert read_nic(cluster) == {"mode": "openvswitch", "link": "br7", "vlan": ".7"}
    back = NicChange.from_wire(["modify", 0, {"bridge": word, "mode": word}])
    cluster.run(OpInstanceSetParams(instance_name=WEB, nics=[back]))
    assert read_nic(cluster) == {"vlan": ".7"}


def test_a_reservation_keeps_its_bridge_when_the_commit_says_auto(cluster: OneProcess) -> None:
    given: dict[str, Any] = {
        "instance_name": WEB,
        "mode": InstCreateMode.CREATE,
        "disks": [],
        "os_type": "noop",
        "disk_template": "diskless",
        "pnode": "node1.example.com",
        "start": False,
    }
    nics = [NicParams(bridge="br7")]
    cluster.run(OpInstanceCreate(**given, nics=nics, forthcoming=True))
    cluster.run(OpInstanceCreate(**given, nics=[NicParams(bridge="auto")], commit=True))
    assert read_nic(cluster) == {"link": "br7"}


def test_the_default_of_the_cluster_itself_goes_back_to_the_builtin_one(
    cluster: OneProcess,
) -> None:
    def link() -> Any:
        return cluster.config.cluster.nicparams["default"]["link"]

    builtin = link()
    cluster.run(OpClusterSetParams(nicparams=NicParams(link="br7")))
    assert link() == "br7"
    cluster.run(OpClusterSetParams(nicparams=NicParams(bridge="auto")))
    assert link() == builtin


def test_a_mode_that_nobody_knows_is_refused(cluster: OneProcess) -> None:
    with pytest.raises(errors.OpPrereqError, match="unknown NIC mode 'automatic'"):
        add(cluster, mode="automatic")
    assert cluster.config.instances == {}


@pytest.mark.parametrize("link", ["br0\n", "br 0", "../br0"])
def test_a_link_is_a_name(cluster: OneProcess, link: str) -> None:
    with pytest.raises(errors.OpPrereqError, match="NIC link"):
        add(cluster, link=link)
    with pytest.raises(errors.OpPrereqError, match="NIC link"):
        cluster.run(OpClusterSetParams(nicparams=NicParams(link=link)))


@pytest.mark.parametrize("mac", ["aa:00:00:11:22:33\n", " aa:00:00:11:22:33", "aa:00:00:11:22"])
def test_a_mac_address_is_nothing_but_the_address(cluster: OneProcess, mac: str) -> None:
    bad = {"mac": mac, "mode": "routed", "ip": "192.0.2.7"}
    with pytest.raises(errors.OpPrereqError, match="is not a MAC address"):
        add(cluster, **bad)
    add(cluster)
    before = cluster.instance(WEB).nics
    change = NicChange.from_wire(["add", -1, bad])
    with pytest.raises(errors.OpPrereqError, match="is not a MAC address"):
        cluster.run(OpInstanceSetParams(instance_name=WEB, nics=[change]))
    assert cluster.instance(WEB).nics == before


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2J", "x" * 129])
def test_the_name_of_a_nic_fits_on_a_line(cluster: OneProcess, name: str) -> None:
    with pytest.raises(errors.OpPrereqError, match="cannot be its name"):
        add(cluster, name=name)
    assert not cluster.config.instances
