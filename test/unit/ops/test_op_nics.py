"""What network cards may be given, in a cluster of one process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from one_process import OneProcess

from ganeti import errors
from ganeti.model.names import DiskTemplate
from ganeti.opcodes.devices import NicChange, NicParams
from ganeti.opcodes.enums import DdmFull, InstCreateMode
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.opcodes.instance_create import OpInstanceCreate

WEB = "web.example.com"


def create(*nics: NicParams) -> OpInstanceCreate:
    return OpInstanceCreate(
        instance_name=WEB, mode=InstCreateMode.CREATE, os_type="noop", disks=[],
        disk_template=DiskTemplate.DISKLESS, pnode="node1.example.com", nics=list(nics),
        beparams={"memory": 64}, start=False,
    )  # fmt: skip


def modify(*changes: tuple[DdmFull, NicParams]) -> OpInstanceSetParams:
    return OpInstanceSetParams(
        instance_name=WEB, nics=[NicChange(what, -1, nic) for what, nic in changes]
    )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[OneProcess]:
    made = OneProcess(tmp_path / "cluster", count=2)
    yield made
    made.close()


@pytest.mark.parametrize("mac", ["aa:00:00:11:22:33\n", " aa:00:00:11:22:33", "aa:00:00:11:22"])
def test_a_mac_address_is_nothing_but_the_address(cluster: OneProcess, mac: str) -> None:
    bad = NicParams(mac=mac, mode="routed", ip="192.0.2.7")
    with pytest.raises(errors.OpPrereqError, match="is no MAC address"):
        cluster.run(create(bad))
    cluster.run(create())
    with pytest.raises(errors.OpPrereqError, match="is no MAC address"):
        cluster.run(modify((DdmFull.ADD, bad)))
    assert cluster.instance(WEB).nics == ()
