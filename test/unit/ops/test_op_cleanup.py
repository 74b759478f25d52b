"""What ``--cleanup`` makes of records of migrations that ended long ago."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from one_process import OneProcess

from ganeti import errors
from ganeti.model.enums import DiskTemplate
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.opcodes.instance_move import OpInstanceMigrate
from ganeti.rpc.calls import NodeCalls

WEB = "web1.example.com"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[OneProcess]:
    made = OneProcess(tmp_path / "cluster")
    made.run(
        OpInstanceCreate(
            instance_name=WEB,
            disk_template=DiskTemplate.DISKLESS,
            disks=[],
            nics=[],
            os_type="noop",
            beparams={"memory": 64},
            mode=InstCreateMode.CREATE,
            pnode="node1.example.com",
        )
    )
    yield made
    made.close()


def running(cluster: OneProcess) -> list[str]:
    return [name for name, where in cluster.paths.items() if (where.fake_hypervisor / WEB).exists()]


def migrate(cluster: OneProcess, target: int) -> None:
    cluster.run(OpInstanceMigrate(instance_name=WEB, target_node=f"node{target}.example.com"))


def open_records(cluster: OneProcess) -> list[str]:
    answers = cluster.call_many(cluster.config.nodes.values(), NodeCalls.run_rights, [])
    return [answer.node.name for answer in answers.values() if answer.value]


def lose_the_end(cluster: OneProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon of the source dies when it is told that its guest is at the target."""
    source = cluster.node(1)

    def die(*_args: object) -> None:
        cluster.silent.add(source.uuid)
        raise errors.RpcError("node node1.example.com does not answer")

    monkeypatch.setattr(cluster.handlers[source.uuid], "instance_finalize_migration_src", die)


def test_a_source_that_missed_the_end_of_its_migration_does_not_get_the_guest_again(
    cluster: OneProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_the_end(cluster, monkeypatch)
    migrate(cluster, 2)
    migrate(cluster, 3)
    cluster.restart_daemons()
    assert open_records(cluster) == ["node1.example.com"]

    cluster.run(OpInstanceMigrate(instance_name=WEB, cleanup=True))
    assert running(cluster) == ["node3"]
    assert cluster.instance(WEB).primary_node == cluster.node(3).uuid
    assert open_records(cluster) == []
    assert list(cluster.paths["node1"].fake_hypervisor.glob(f"*{WEB}")) == []


def test_the_node_with_the_guest_does_not_answer_either(
    cluster: OneProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_the_end(cluster, monkeypatch)
    migrate(cluster, 2)
    migrate(cluster, 3)
    cluster.restart_daemons()
    cluster.silent.add(cluster.node(3).uuid)

    cluster.run(OpInstanceMigrate(instance_name=WEB, cleanup=True))
    assert running(cluster) == ["node3"]
    assert cluster.instance(WEB).primary_node == cluster.node(3).uuid
