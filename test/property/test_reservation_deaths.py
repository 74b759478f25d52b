"""The master dies at every step of a commit: all is in agreement, or verify says what helps.

A step is a call to a node or a change of the configuration. Afterwards the reservation can
be committed after all (tried after every other step), or be removed (after the others), and then
nothing of it is left anywhere.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from one_process import OneProcess

from ganeti import errors
from ganeti.model.enums import DiskTemplate
from ganeti.opcodes.devices import DiskParams
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.instance import OpInstanceRemove
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.opcodes.reservation import OpReservationExpire

pytestmark = pytest.mark.long

WEB = "web.example.com"


def _reserve() -> OpInstanceCreate:
    return OpInstanceCreate(
        instance_name=WEB,
        mode=InstCreateMode.CREATE,
        os_type="noop",
        nics=[],
        disks=[DiskParams(size=1), DiskParams(size=2)],
        disk_template=DiskTemplate.FILE,
        pnode="node2.example.com",
        beparams={"memory": 64},
        forthcoming=True,
    )


def _commit() -> OpInstanceCreate:
    return OpInstanceCreate(
        instance_name=WEB, mode=InstCreateMode.CREATE, disks=[], nics=[], commit=True
    )


@pytest.fixture(scope="module")
def prepared_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tree of a cluster with one reservation on node2."""
    root = tmp_path_factory.mktemp("begun") / "cluster"
    cluster = OneProcess(root)
    cluster.run(_reserve())
    assert cluster.images() == []
    assert cluster.verify() == []
    cluster.close()
    return root


@pytest.mark.usefixtures("skip_fsync")
def test_the_master_dies_at_every_step_of_a_commit(tmp_path: Path, prepared_tree: Path) -> None:
    steps = 0
    for when, cluster in OneProcess.deaths(prepared_tree, tmp_path, lambda _c: _commit(), stride=1):
        _inspect(cluster, "remove" if steps % 2 else "commit", when)
        steps += 1
    assert steps > 10


def _inspect(cluster: OneProcess, then: str, when: str) -> None:
    cluster.check_quiet(when)
    found = cluster.instance(WEB)
    reported = "\n".join(cluster.verify())
    if found.interrupted:
        assert f"gnt-instance add --commit {WEB} starts over" in reported, when
        assert f"gnt-instance remove {WEB} gives it up" in reported, when
    elif found.forthcoming:
        assert reported == "", when
        assert cluster.images() == [], when
    if found.forthcoming and then == "commit":
        cluster.run(_commit())
        assert cluster.running(WEB) == ["node2"], when
        assert len(cluster.images()) == 2, when
        assert cluster.verify() == [], when
        return
    cluster.run(OpInstanceRemove(instance_name=WEB))
    assert cluster.images() == [], when
    assert cluster.running(WEB) == [], when
    assert cluster.config.instances == {}, when
    assert cluster.config.disks == {}, when
    assert cluster.verify() == [], when


def test_a_commit_that_fails_leaves_the_reservation_as_it_was(
    tmp_path: Path, prepared_tree: Path
) -> None:
    shutil.copytree(prepared_tree, tmp_path / "c", symlinks=True)
    cluster = OneProcess(tmp_path / "c")
    try:
        before = cluster.instance(WEB)
        disk = cluster.config.disks[before.disks[1]]
        cluster.image(disk.uuid).parent.mkdir()
        cluster.image(disk.uuid).write_bytes(b"somebody else's")
        with pytest.raises(errors.OpExecError):
            cluster.run(_commit())
        after = cluster.instance(WEB)
        assert after.forthcoming
        assert not after.interrupted
        assert (after.reservation, after.disks) == (before.reservation, before.disks)
        assert all(cluster.config.disks[uuid].forthcoming for uuid in after.disks)
        assert cluster.run(OpReservationExpire(instance_name=WEB)) is False
        cluster.run(_commit())
        with pytest.raises(errors.OpPrereqError, match="exists already; there is nothing to"):
            cluster.run(_commit())
    finally:
        cluster.close()
