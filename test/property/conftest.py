"""What several of these tests have in common."""

from __future__ import annotations

from pathlib import Path

import pytest
from one_process import OneProcess

from ganeti.model.enums import DiskTemplate
from ganeti.opcodes.devices import DiskParams
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.steps.relocation import settlement


@pytest.fixture
def skip_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Durability has tests of its own; elsewhere it only takes time."""
    monkeypatch.setattr("os.fsync", lambda _fd: None)


@pytest.fixture
def skip_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration is settled without waiting for nodes that do not answer."""
    monkeypatch.setattr(settlement, "PATIENCE", 0.0)


@pytest.fixture(scope="module")
def running_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tree of a cluster with ``web.example.com``, which runs on two disks of node2."""
    root = tmp_path_factory.mktemp("running") / "cluster"
    cluster = OneProcess(root)
    cluster.run(
        OpInstanceCreate(
            instance_name="web.example.com",
            mode=InstCreateMode.CREATE,
            os_type="noop",
            start=True,
            nics=[],
            disks=[DiskParams(size=1), DiskParams(size=2)],
            disk_template=DiskTemplate.FILE,
            pnode="node2.example.com",
        )
    )
    for uuid in cluster.instance("web.example.com").disks:
        cluster.mark(uuid)
    cluster.close()
    return root
