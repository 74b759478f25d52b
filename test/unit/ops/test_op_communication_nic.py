"""The NIC by which a guest talks to its node: when it is added and when it goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from op_samples import config, with_instance

from ganeti import errors
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.nic import Nic
from ganeti.opcodes.devices import NicChange, NicParams
from ganeti.opcodes.enums import DdmFull, InstCreateMode
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.planning import communication_nic

NETWORK = "talk"
MAC = "aa:00:00:00:00:02"
OTHER = NicParams(ip="192.0.2.9")


def create(of: Config, wanted: bool) -> list[NicParams]:
    op = OpInstanceCreate(
        instance_name="web",
        mode=InstCreateMode.CREATE,
        disks=[],
        nics=[OTHER],
        instance_communication=wanted,
    )
    return communication_nic.all_nics(of, op)


def modify(of: Config, wanted: bool | None, *nics: Nic) -> Sequence[NicChange]:
    of = with_instance(of, "web", of.cluster.master_node)
    web = base.replace(of.instance("web"), nics=nics)
    of = of.apply([("instances", web.uuid, web)], [], None, mtime=3.0)
    other: list[Any] = [NicChange(DdmFull.ADD, -1, OTHER)]
    op = OpInstanceSetParams(instance_name="web", nics=other, instance_communication=wanted)
    first, *rest = communication_nic.changes(of, of.instance("web"), op)
    assert first == other[0], "what was requested besides stays"
    return rest


def talking() -> Config:
    return config(instance_communication_network=NETWORK)


CARD = Nic(uuid="nic-1", mac=MAC, name="ganeti:communication:web")


def test_a_new_instance_has_it_only_when_asked_for() -> None:
    assert create(talking(), False) == [OTHER]
    other, card = create(talking(), True)
    assert other == OTHER
    assert (card.name, card.network) == ("ganeti:communication:web", NETWORK)
    assert (card.ip, card.mac) == ("pool", "generate")


@pytest.mark.parametrize(
    ("wanted", "nics"), [(None, ()), (None, (CARD,)), (False, ()), (True, (CARD,))]
)
def test_what_is_so_already_is_left(wanted: bool | None, nics: tuple[Nic, ...]) -> None:
    assert modify(talking(), wanted, *nics) == []


def test_it_is_added_beside_other_nics() -> None:
    for nics in ((), (Nic(uuid="nic-2", mac=MAC, name="uplink"),), (Nic(uuid="nic-3", mac=MAC),)):
        [change] = modify(talking(), True, *nics)
        assert (change.action, change.params.network) == (DdmFull.ADD, NETWORK)
        assert change.params.name == CARD.name


def test_it_is_removed_by_its_uuid() -> None:
    [change] = modify(talking(), False, Nic(uuid="nic-2", mac=MAC, name="uplink"), CARD)
    assert (change.action, change.item) == (DdmFull.REMOVE, CARD.uuid)


def test_without_a_network_the_command_that_sets_one_is_named() -> None:
    for ask in (lambda: create(config(), True), lambda: modify(config(), True)):
        with pytest.raises(errors.OpPrereqError, match="--instance-communication-network NAME"):
            ask()
    assert create(config(), False) == [OTHER]
    assert len(modify(config(), False, CARD)) == 1
