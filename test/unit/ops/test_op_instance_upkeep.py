"""Small promises of operations on an instance, in a cluster of one process."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from one_process import OS_DIR, OneProcess

from ganeti import errors
from ganeti.model.enums import AdminState, DiskTemplate
from ganeti.opcodes.cluster import OpClusterRepairDiskSizes
from ganeti.opcodes.devices import DiskParams
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.instance import (
    OpInstanceRemove,
    OpInstanceRename,
    OpInstanceSetParams,
    OpInstanceShutdown,
    OpInstanceStartup,
)
from ganeti.opcodes.instance_create import OpInstanceCreate

WEB = "web.example.com"


@pytest.fixture(scope="module")
def cluster_with_os(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneProcess]:
    """With an OS ``tells`` that writes its environment onto the first disk."""
    made = OneProcess(tmp_path_factory.mktemp("upkeep") / "cluster", count=2)
    for where in made.paths.values():
        [definitions] = [path for path in where.os_search_path if path.is_symlink()]
        definitions.unlink()
        shutil.copytree(OS_DIR, definitions)
        tells = definitions / "tells"
        shutil.copytree(definitions / "noop", tells)
        (tells / "parameters.list").write_text("")
        for name in ("create", "rename"):
            (tells / name).write_text('#!/bin/sh\nenv | dd of="$DISK_0_PATH" conv=notrunc\n')
    yield made
    made.close()


@pytest.fixture
def cluster(cluster_with_os: OneProcess) -> Iterator[OneProcess]:
    cluster_with_os.log.clear()
    cluster_with_os.run(
        OpInstanceCreate(
            instance_name=WEB,
            mode=InstCreateMode.CREATE,
            disks=[DiskParams(size=8)],
            nics=[],
            os_type="tells",
            disk_template=DiskTemplate.FILE,
            pnode="node1.example.com",
            beparams={"memory": 64},
        )
    )
    yield cluster_with_os
    cluster_with_os.restart_daemons()
    cluster_with_os.run(OpInstanceRemove(instance_name=WEB, shutdown_timeout=0))


def read_environment(cluster: OneProcess) -> dict[str, str]:
    """What the OS script was told last."""
    [disk] = cluster.instance(WEB).disks
    text = cluster.image(disk).read_bytes().partition(b"\0")[0].decode()
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def test_a_new_instance_tells_its_os_when_it_was_made(cluster: OneProcess) -> None:
    instance = cluster.instance(WEB)
    assert instance.ctime > 0
    assert read_environment(cluster)["INSTANCE_CTIME"] == str(instance.ctime)
    assert float(read_environment(cluster)["INSTANCE_MTIME"]) >= instance.ctime


def test_the_disks_of_an_instance_that_is_stopped_for_now_are_not_active(
    cluster: OneProcess,
) -> None:
    assert cluster.instance(WEB).disks_active
    cluster.run(OpInstanceShutdown(instance_name=WEB, no_remember=True, timeout=0))
    assert cluster.running(WEB) == []
    assert cluster.instance(WEB).admin_state is AdminState.UP
    assert not cluster.instance(WEB).disks_active
    cluster.run(OpInstanceStartup(instance_name=WEB))
    assert cluster.instance(WEB).disks_active


def test_online_of_an_instance_that_is_online_changes_nothing(cluster: OneProcess) -> None:
    cluster.run(OpInstanceSetParams(instance_name=WEB, offline=False))
    assert cluster.instance(WEB).admin_state is AdminState.UP
    assert cluster.running(WEB) == ["node1"]
    assert f"instance {WEB} is online already" in cluster.log


def test_a_rename_to_the_same_name_only_tells_the_os(cluster: OneProcess) -> None:
    cluster.run(OpInstanceShutdown(instance_name=WEB, timeout=0))
    before = cluster.instance(WEB)
    assert cluster.run(OpInstanceRename(instance_name=WEB, new_name=WEB)) == WEB
    assert cluster.instance(WEB).disks == before.disks
    assert read_environment(cluster)["OLD_INSTANCE_NAME"] == WEB
    assert cluster.problems == []
    assert cluster.held_locks() == []


def test_sizes_that_could_not_be_measured_are_an_error(cluster: OneProcess) -> None:
    cluster.silent.add(cluster.node(1).uuid)
    with pytest.raises(errors.OpExecError, match=r"disks on node1\.example\.com were not measured"):
        cluster.run(OpClusterRepairDiskSizes())


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("False", False), ("", False), ("1", None), ("yes", None)]
)
def test_truth_values_of_parameters(cluster: OneProcess, text: str, value: Any) -> None:
    op = OpInstanceSetParams(instance_name=WEB, beparams={"auto_balance": text})
    if value is None:
        with pytest.raises(errors.ParameterError, match="'auto_balance' must be true or false"):
            cluster.run(op)
        return
    cluster.run(op)
    assert cluster.config.beparams(cluster.instance(WEB))["auto_balance"] is value
