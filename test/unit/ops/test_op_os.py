"""Which OS an instance may get, in a cluster of one process."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from one_process import OS_DIR, OneProcess

from ganeti import errors
from ganeti.model.enums import DiskTemplate
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.devices import DiskParams
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.instance import OpInstanceReinstall, OpInstanceRemove, OpInstanceSetParams
from ganeti.opcodes.instance_create import OpInstanceCreate

WEB = "web.example.com"
BOTH = r"OS 'bootsector' has variants; choose one: bootsector\+default, bootsector\+beat"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[OneProcess]:
    """With OS definitions of its own: noop is for kvm only, other is for all."""
    made = OneProcess(tmp_path / "cluster", count=1)
    [definitions] = [path for path in made.paths["node1"].os_search_path if path.is_symlink()]
    definitions.unlink()
    shutil.copytree(OS_DIR, definitions)
    shutil.copytree(definitions / "noop", definitions / "other")
    (definitions / "noop" / "hypervisors").write_text("kvm\nxen-pvm\n")
    yield made
    made.close()


def create(os_name: str, *, force: bool = False) -> OpInstanceCreate:
    return OpInstanceCreate(
        instance_name=WEB,
        mode=InstCreateMode.CREATE,
        disks=[DiskParams(size=8)],
        nics=[],
        os_type=os_name,
        disk_template=DiskTemplate.FILE,
        pnode="node1.example.com",
        start=False,
        force_variant=force,
    )


def reinstall(os_name: str) -> OpCode:
    return OpInstanceReinstall(instance_name=WEB, os_type=os_name)


def modify(os_name: str) -> OpCode:
    return OpInstanceSetParams(instance_name=WEB, os_name=os_name)


@pytest.mark.parametrize("make", [create, reinstall, modify])
@pytest.mark.parametrize(
    ("os_name", "text"),
    [("bootsector", BOTH), ("noop", "does not support hypervisor fake, only kvm, xen-pvm")],
)
def test_an_os_that_does_not_fit_is_refused(
    cluster: OneProcess, make: object, os_name: str, text: str
) -> None:
    if make is not create:
        cluster.run(create("other"))
    before = cluster.config.instances
    with pytest.raises(errors.OpPrereqError, match=text):
        cluster.run(make(os_name))  # type: ignore[operator]
    assert cluster.config.instances == before
    if before:
        cluster.run(make("bootsector+beat"))  # type: ignore[operator]
        assert cluster.instance(WEB).os == "bootsector+beat"


def test_an_instance_from_before_the_variants_keeps_its_os(cluster: OneProcess) -> None:
    cluster.run(create("bootsector", force=True))
    cluster.run(OpInstanceSetParams(instance_name=WEB, osparams={"greeting": "hello"}))
    cluster.run(OpInstanceReinstall(instance_name=WEB))
    assert cluster.instance(WEB).os == "bootsector"
    cluster.run(OpInstanceRemove(instance_name=WEB))
