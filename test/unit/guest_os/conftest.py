"""A complete OS definition to spoil, and an instance to install."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ganeti.hypervisor.interface import AttachedDisk
from ganeti.model.enums import DiskTemplate, HypervisorName
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeDisk, NodeInstance, NodeNic

SCRIPTS = ("create", "import", "export", "rename", "verify")


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "node")


@pytest.fixture
def make_os(paths: Paths) -> Callable[..., Path]:
    """Writes a definition into a directory of the search path; keywords replace scripts."""

    def make(name: str = "tiny", place: int = 0, **scripts: str) -> Path:
        directory = paths.os_search_path[place] / name
        directory.mkdir(parents=True)
        for script in SCRIPTS:
            text = scripts.get(script, "exit 0")
            path = directory / script
            path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)
        (directory / "ganeti_api_version").write_text("20\n15\n")
        (directory / "variants.list").write_text("# known\nsmall\n\nlarge\n")
        (directory / "parameters.list").write_text(
            "size How large it gets\ndisk-label  Its label\n"
        )
        return directory

    return make


@pytest.fixture
def make_instance() -> Callable[..., NodeInstance]:
    def make(**changes: object) -> NodeInstance:
        values: dict[str, object] = {
            "uuid": "i-uuid",
            "name": "web1.example.com",
            "primary_node": "n1-uuid",
            "secondary_nodes": ("n2-uuid", "n3-uuid"),
            "os": "tiny+small",
            "hypervisor": HypervisorName.KVM,
            "hvparams": {"disk_type": "paravirtual", "nic_type": "e1000", "acpi": True},
            "beparams": {"maxmem": 256, "auto_balance": False},
            "osparams": {"size": "big", "disk-label": "root"},
            "nics": (
                NodeNic(
                    uuid="nic-uuid",
                    mac="aa:00:00:11:22:33",
                    nicparams={"mode": "bridged", "link": "br0", "vlan": ""},
                ),
            ),
            "ctime": 1700000000.25,
            "mtime": 1700000001.5,
        }
        return NodeInstance(**{**values, **changes})  # type: ignore[arg-type]

    return make


@pytest.fixture
def make_disk() -> Callable[..., AttachedDisk]:
    def make(
        path: Path | str, size: int = 4, uri: str | None = None, **more: object
    ) -> AttachedDisk:
        disk = NodeDisk(
            uuid="d-uuid",
            dev_type=DiskTemplate.FILE,
            logical_id=("loop", str(path)),
            iv_name="disk/0",
            size=size,
            **more,  # type: ignore[arg-type]
        )
        return AttachedDisk(disk, str(path), uri)

    return make
