"""OS definitions on a node, with real scripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from local_node import LocalNode
from node_samples import INSTANCE, disk, instance

from ganeti import errors
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeInstance


@pytest.fixture
def os_dir(paths: Paths) -> Path:
    """A good OS definition named ``tiny``."""
    directory = paths.os_search_path[0] / "tiny"
    directory.mkdir(parents=True)
    for name in ("create", "import", "export", "rename", "verify"):
        script(directory, name, "true")
    (directory / "ganeti_api_version").write_text("20\n")
    (directory / "parameters.list").write_text("flavour how it tastes\n")
    return directory


def script(directory: Path, name: str, body: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\n{body}\n")
    (directory / name).chmod(0o755)


def prepare(node: LocalNode, paths: Paths) -> NodeInstance:
    item = disk(paths)
    made = instance(item, os="tiny", osparams={"flavour": "sour"})
    node.blockdev_create(item, 4, INSTANCE, True, "", False)
    node.blockdev_assemble(item, made, True, 0)
    return made


def test_an_instance_is_installed_on_its_disk(node: LocalNode, paths: Paths, os_dir: Path) -> None:
    script(os_dir, "create", 'echo "$INSTANCE_NAME $OSP_FLAVOUR" > "$DISK_0_PATH"')
    item = prepare(node, paths)
    node.instance_os_add(item, False, 0)
    assert Path(item.disks_info[0].logical_id[1]).read_text() == f"{INSTANCE} sour\n"


def test_a_rename_script_gets_the_old_name(node: LocalNode, paths: Paths, os_dir: Path) -> None:
    script(os_dir, "rename", 'echo "$OLD_INSTANCE_NAME" > "$DISK_0_PATH"')
    item = prepare(node, paths)
    node.instance_run_rename(item, "old.example.com", 0)
    assert Path(item.disks_info[0].logical_id[1]).read_text() == "old.example.com\n"


def test_a_failed_script_names_its_log(node: LocalNode, paths: Paths, os_dir: Path) -> None:
    script(os_dir, "create", "echo no mirror; exit 4")
    with pytest.raises(errors.OpExecError) as caught:
        node.instance_os_add(prepare(node, paths), False, 0)
    [log] = paths.os_log.iterdir()
    assert str(log) in str(caught.value)
    assert "no mirror" in str(caught.value)


def test_disks_must_be_activated(node: LocalNode, paths: Paths, os_dir: Path) -> None:
    item = disk(paths)
    node.blockdev_create(item, 4, INSTANCE, True, "", False)
    with pytest.raises(errors.BlockDeviceError, match="not activated"):
        node.instance_os_add(instance(item, os="tiny"), False, 0)


def test_definitions_are_listed_and_judged(node: LocalNode, os_dir: Path) -> None:
    [found] = node.os_diagnose()
    assert (found.name, found.valid, found.api_versions) == ("tiny", True, [20])
    assert node.os_validate(True, "tiny", ["parameters"], {"flavour": "sweet"}, False, "")
    assert not node.os_validate(False, "nosuch", ["parameters"], {}, False, "")
    with pytest.raises(errors.OpPrereqError, match="nosuch"):
        node.os_validate(True, "nosuch", ["parameters"], {}, False, "")
    script(os_dir, "verify", "echo too sour; exit 1")
    with pytest.raises(errors.OpPrereqError, match="too sour"):
        node.os_validate(True, "tiny", ["parameters"], {"flavour": "sour"}, False, "")
