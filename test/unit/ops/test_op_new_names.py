"""Names of instances that are checked with the name service: the hosts file of the cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from one_process import OneProcess

from ganeti import errors
from ganeti.model.enums import DiskTemplate
from ganeti.opcodes.devices import DiskParams
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.instance import OpInstanceRename
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.steps import host_names
from ganeti.paths import Paths


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``web`` is free, ``alias`` belongs to node1; 127.0.0.9 is an address of this machine."""
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    path = Paths(tmp_path).hosts
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "127.0.0.1 node1.example.com node1 alias.example.com\n127.0.0.9 web.example.com web\n"
    )
    return path


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("web", "web.example.com"),
        ("web.example.com", "web.example.com"),
        ("node1", "node1.example.com"),
    ],
)
def test_the_full_name_is_taken(name: str, full: str) -> None:
    assert host_names.choose_name(name, name_check=True, ip_check=False) == full


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize(
    ("name", "name_check", "ip_check", "text"),
    [
        ("alias.example.com", True, False, "resolves to node1.example.com, the name of another"),
        ("gone.invalid", True, False, "has no address .* omit --name-check"),
        ("web", False, True, "add --name-check"),
        ("web", True, True, r"address 127\.0\.0\.9 of 'web' is in use already"),
    ],
)
def test_names_that_are_refused(name: str, name_check: bool, ip_check: bool, text: str) -> None:
    with pytest.raises(errors.OpPrereqError, match=text):
        host_names.choose_name(name, name_check=name_check, ip_check=ip_check)


@pytest.mark.usefixtures("hosts")
def test_what_is_not_asked_for_is_not_checked() -> None:
    assert host_names.choose_name("alias.example.com", name_check=False, ip_check=False) == (
        "alias.example.com"
    )
    assert host_names.choose_name("web", name_check=False, ip_check=False) == "web"


@pytest.mark.usefixtures("hosts")
def test_instances_get_the_full_name(tmp_path: Path) -> None:
    """What the lock, the configuration and the files of disks are called."""
    cluster = OneProcess(tmp_path / "cluster", count=2)
    try:
        made = cluster.run(
            OpInstanceCreate(
                instance_name="web",
                mode=InstCreateMode.CREATE,
                name_check=True,
                os_type="noop",
                disk_template=DiskTemplate.FILE,
                disks=[DiskParams(size=8)],
                nics=[],
                start=False,
                pnode="node1.example.com",
            )
        )
        assert made
        assert [item.name for item in cluster.config.instances.values()] == ["web.example.com"]
        cluster.run(OpInstanceRename(instance_name="web", new_name="other"))
        renamed = cluster.run(
            OpInstanceRename(instance_name="other", new_name="web", name_check=True)
        )
        assert renamed == "web.example.com"
        [image] = cluster.images()
        assert image.parent.name == "web.example.com"
    finally:
        cluster.close()
