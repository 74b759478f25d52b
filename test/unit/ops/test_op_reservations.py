"""What can be done to a reservation, and what is refused, in a cluster of one process."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from one_process import OneProcess

from ganeti import errors
from ganeti.config.changes import Author
from ganeti.model import base
from ganeti.model.enums import DiskTemplate
from ganeti.opcodes.devices import DiskChange, DiskParams, NicParams
from ganeti.opcodes.enums import DdmFull, InstCreateMode
from ganeti.opcodes.instance import OpInstanceRemove, OpInstanceRename, OpInstanceSetParams
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.opcodes.instance_move import OpInstanceFailover
from ganeti.opcodes.reservation import (
    OpReservationAdd,
    OpReservationExpire,
    OpReservationSetParams,
)
from ganeti.ops.instance.create import InstanceCreate
from ganeti.ops.steps.running import power
from ganeti.storage import held

WEB = "web.example.com"


def create(name: str = WEB, **given: Any) -> OpInstanceCreate:
    values = {"mode": InstCreateMode.CREATE, "disks": [], "nics": [], **given}
    return OpInstanceCreate(instance_name=name, **values)


def make_placed(name: str = WEB, **given: Any) -> OpInstanceCreate:
    return create(
        name,
        **{
            "forthcoming": True,
            "disks": [DiskParams(size=8)],
            "os_type": "noop",
            "disk_template": DiskTemplate.FILE,
            "pnode": "node1.example.com",
            "beparams": {"memory": 64},
            **given,
        },
    )


@pytest.fixture(scope="module")
def started_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneProcess]:
    made = OneProcess(tmp_path_factory.mktemp("reservations") / "cluster", count=2)
    yield made
    made.close()


@pytest.fixture
def cluster(started_cluster: OneProcess) -> Iterator[OneProcess]:
    yield started_cluster
    for instance in list(started_cluster.config.instances.values()):
        started_cluster.run(OpInstanceRemove(instance_name=instance.handle))
    for where in started_cluster.paths.values():
        (where.conf / "fake-hypervisor.json").unlink(missing_ok=True)
    assert started_cluster.images() == []
    assert started_cluster.problems == []


def commit(cluster: OneProcess, **given: Any) -> Any:
    return cluster.run(create(commit=True, **given))


# end of the time -------------------------------------------------------------------------------


def reserve_until(cluster: OneProcess, seconds: float) -> None:
    end = time.time() + 3600
    cluster.run(OpReservationAdd(instances=[make_placed()], owner="alice", expires=end))
    instance = cluster.instance(WEB)
    assert instance.reservation is not None
    kept = base.replace(instance.reservation, expires=time.time() + seconds)
    cluster.store.change(
        "time passes", Author(), lambda draft: draft.update(instance, reservation=kept)
    )


def test_an_expired_reservation_goes_and_nothing_else(cluster: OneProcess) -> None:
    expire = OpReservationExpire(instance_name=WEB)
    assert cluster.run(expire) is False
    reserve_until(cluster, 60)
    assert cluster.run(expire) is False
    assert "it has time left" in cluster.log[-1]
    cluster.run(OpReservationSetParams(instance_name=WEB, never_expires=True))
    assert cluster.run(expire) is False


def test_what_has_expired_can_still_be_committed_and_then_stays(cluster: OneProcess) -> None:
    reserve_until(cluster, -1)
    commit(cluster)
    assert cluster.run(OpReservationExpire(instance_name=WEB)) is False
    assert "it is an instance by now" in cluster.log[-1]
    assert cluster.instance(WEB).reservation is None


def test_the_end_gives_the_place_back(cluster: OneProcess) -> None:
    reserve_until(cluster, -1)
    node = cluster.node(1).uuid
    assert held.memory(cluster.config, node).amount == 64
    assert cluster.run(OpReservationExpire(instance_name=WEB)) is True
    assert held.memory(cluster.config, node).amount == 0
    assert cluster.config.disks == {}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "nothing to change"),
        ({"expires": 5.0}, "would have expired already"),
        ({"expires": 5e9, "never_expires": True}, "either a time or"),
    ],
)
def test_wrong_times_are_refused(cluster: OneProcess, given: dict[str, Any], text: str) -> None:
    cluster.run(make_placed())
    with pytest.raises(errors.OpPrereqError, match=text):
        cluster.run(OpReservationSetParams(instance_name=WEB, **given))


# commit ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"os_type": "other"}, "the OS of reservation web.example.com is noop, not other"),
        ({"beparams": {"memory": 128}}, "backend parameter maxmem .* is 64, not 128"),
        ({"disks": [DiskParams(size=9)]}, "list of disk sizes .* is 8, not 9"),
        ({"pnode": "node2.example.com"}, "node1.example.com, not node2.example.com"),
        ({"disk_template": DiskTemplate.SHAREDFILE}, "disk template .* file, not sharedfile"),
        ({"nics": [NicParams()]}, "number of NICs .* is 0, not 1"),
    ],
)
def test_a_commit_cannot_change_what_is_reserved(
    cluster: OneProcess, given: dict[str, Any], text: str
) -> None:
    cluster.run(make_placed())
    with pytest.raises(errors.OpPrereqError, match=text):
        commit(cluster, **given)
    assert cluster.instance(WEB).forthcoming
    assert cluster.images() == []


def test_a_commit_may_say_everything_again(cluster: OneProcess) -> None:
    cluster.run(make_placed())
    again = make_placed(forthcoming=False, commit=True)
    assert cluster.run(again) == ["node1.example.com"]
    assert cluster.running(WEB) == ["node1"]


def test_a_commit_adds_what_is_open(cluster: OneProcess) -> None:
    cluster.run(create(forthcoming=True))
    given = {"disks": [DiskParams(size=4)], "disk_template": DiskTemplate.FILE}
    commit(cluster, os_type="noop", pnode="node2.example.com", **given)
    assert cluster.running(WEB) == ["node2"]
    assert len(cluster.images()) == 1


def test_a_commit_that_fails_takes_away_what_it_added(
    cluster: OneProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_args: Any, **_more: Any) -> None:
        raise errors.OpExecError("no luck")

    cluster.run(create(forthcoming=True))
    before = cluster.instance(WEB)
    monkeypatch.setattr(power, "start", fails)
    given = {"disks": [DiskParams(size=4)], "disk_template": DiskTemplate.FILE}
    with pytest.raises(errors.OpExecError, match="no luck"):
        commit(cluster, os_type="noop", pnode="node2.example.com", **given)
    after = cluster.instance(WEB)
    assert base.replace(after, mtime=before.mtime, serial_no=before.serial_no) == before
    assert cluster.config.disks == {}
    assert cluster.images() == []
    assert cluster.verify() == []


def test_a_name_that_does_not_resolve_is_refused(
    cluster: OneProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_to_resolve(_name: str) -> str:
        raise errors.ResolverError("no such host")

    monkeypatch.setattr("ganeti.net.resolve.address", fail_to_resolve)
    cluster.run(make_placed())
    with pytest.raises(errors.OpPrereqError, match=r"has no address .*no such host"):
        commit(cluster, name_check=True)


def test_reserving_and_committing_at_once_makes_no_sense(cluster: OneProcess) -> None:
    with pytest.raises(errors.OpPrereqError, match="either --forthcoming"):
        InstanceCreate.check_submission(create(forthcoming=True, commit=True))
    with pytest.raises(errors.OpPrereqError, match="is not known"):
        commit(cluster)


# changes ---------------------------------------------------------------------------------------


def test_disks_are_added_resized_and_removed_on_paper(cluster: OneProcess) -> None:
    cluster.run(make_placed())

    def change(action: DdmFull, index: int, **params: Any) -> None:
        wanted = DiskChange(action, index, DiskParams(**params))
        cluster.run(OpInstanceSetParams(instance_name=WEB, disks=[wanted]))

    change(DdmFull.ADD, -1, size=32)
    change(DdmFull.MODIFY, 0, size=16)
    sizes = [disk.size for disk in cluster.config.disks_of(cluster.instance(WEB))]
    assert sizes == [16, 32]
    assert held.all_space(cluster.config, cluster.node(1).uuid).amount == 48
    change(DdmFull.REMOVE, 0)
    cluster.run(OpInstanceFailover(instance_name=WEB, target_node="node2.example.com"))
    cluster.run(OpInstanceRename(instance_name=WEB, new_name="new.example.com"))
    assert cluster.images() == []
    cluster.run(create("new.example.com", commit=True))
    [image] = cluster.images()
    assert image.parent.name == "new.example.com"
    assert cluster.running("new.example.com") == ["node2"]


def test_what_is_reserved_counts_for_all_who_come_later(cluster: OneProcess) -> None:
    rules = {"memory_free": 100, "memory_total": 1000}
    path: Path = cluster.paths["node1"].conf / "fake-hypervisor.json"
    path.write_text(json.dumps({"node_info": {"*": {"lie": rules}}}))
    cluster.run(make_placed())
    text = r"free 36 MiB \(100 MiB less 64 MiB that are reserved for web.example.com\)"
    for wrong in (
        make_placed("a.example.com"),
        make_placed("b.example.com", forthcoming=False),
        OpInstanceSetParams(instance_name=WEB, beparams={"memory": 101}),
    ):
        with pytest.raises(errors.OpPrereqError, match="not enough memory on node node1") as err:
            cluster.run(wrong)
        if not isinstance(wrong, OpInstanceSetParams):
            assert err.match(text)
    cluster.run(OpInstanceSetParams(instance_name=WEB, beparams={"memory": 100}))
    commit(cluster)


def test_a_batch_is_all_or_nothing(cluster: OneProcess) -> None:
    for wrong, text in (
        ([make_placed(), make_placed()], "is in the list twice"),
        ([make_placed(), make_placed("b.example.com", pnode="node9")], "node9"),
        (
            [make_placed(), make_placed("b.example.com", disks=[DiskParams(size=1 << 20)])],
            "not enough space",
        ),
        (
            [make_placed(), make_placed("b.example.com", disks=[DiskParams(size=1, adopt="x")])],
            "adopt",
        ),
        ([], "nothing to reserve"),
    ):
        with pytest.raises(errors.OpPrereqError, match=text):
            cluster.run(OpReservationAdd(instances=wrong))
        assert cluster.config.instances == {}
    assert len(cluster.run(OpReservationAdd(instances=[make_placed("")] * 3))) == 3
