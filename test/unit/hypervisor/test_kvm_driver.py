"""The driver without any guest: checks, the look at the node, what it costs to have it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ganeti import errors
from ganeti.hypervisor.kvm import inputs, launch
from ganeti.hypervisor.kvm.driver import KvmHypervisor
from ganeti.hypervisor.kvm.params import load
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeInstance

QEMU = """#!/bin/sh
case "$1" in
--version) echo "QEMU emulator version 7.2.1";;
-machine) printf 'Supported machines are:\\npc-i440fx-7.2 PC (default)\\n';;
*) echo "cannot do that" >&2; exit 1;;
esac
"""


@pytest.fixture
def driver(tmp_path: Path) -> KvmHypervisor:
    return KvmHypervisor(Paths(tmp_path / "root"))


@pytest.fixture
def broken_qemu(tmp_path: Path) -> dict[str, Any]:
    """Parameters with a QEMU that refuses to run guests."""
    program = tmp_path / "kvm"
    program.write_text(QEMU)
    program.chmod(0o755)
    return {"kernel_path": "", "accelerator": "tcg", "kvm_path": str(program)}


def files_left(driver: KvmHypervisor) -> list[Path]:
    return [p for p in driver.store.root.rglob("*") if p.is_file() and p.name != "qemu.json"]


def instance(broken_qemu: dict[str, Any], **changes: Any) -> NodeInstance:
    facts: dict[str, Any] = {
        "uuid": "u",
        "name": "web1",
        "primary_node": "n",
        "hypervisor": "kvm",
        "hvparams": broken_qemu,
    }
    return NodeInstance(**{**facts, **changes})


def test_refusal_of_qemu_is_told_and_nothing_is_left(
    driver: KvmHypervisor, broken_qemu: dict[str, Any]
) -> None:
    with pytest.raises(errors.HypervisorError, match=r"exit code 1.*cannot do that"):
        driver.start(instance(broken_qemu), [])
    assert files_left(driver) == []
    assert driver.list_names() == []


def test_masks_that_do_not_fit_stop_the_start(
    driver: KvmHypervisor, broken_qemu: dict[str, Any]
) -> None:
    wrong = instance({**broken_qemu, "cpu_mask": "0:0:0"}, beparams={"vcpus": 2})
    with pytest.raises(errors.HypervisorError, match="3 masks but the instance has 2"):
        driver.start(wrong, [])
    assert files_left(driver) == []


def test_verify_tells_what_is_missing(driver: KvmHypervisor, broken_qemu: dict[str, Any]) -> None:
    assert driver.verify(broken_qemu) is None
    assert "/no/kvm does not exist" in (driver.verify({**broken_qemu, "kvm_path": "/no/kvm"}) or "")
    assert "unknown kvm parameter" in (driver.verify({"nonsense": 1}) or "")


def test_node_info_without_qemu(driver: KvmHypervisor, broken_qemu: dict[str, Any]) -> None:
    assert driver.node_info(broken_qemu).hv_version == (7, 2, 1)
    assert driver.node_info({**broken_qemu, "kvm_path": "/no/kvm"}).hv_version is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernel_path", "/no/such/file"),
        ("initrd_path", "/no/such/file"),
        ("cdrom_image_path", "/no/such/file"),
        ("cdrom2_image_path", "/no/such/file"),
        ("floppy_image_path", "/no/such/file"),
        ("mem_path", "/no/such/directory"),
        ("vnc_bind_address", "/no/such/directory"),
    ],
)
def test_files_must_be_on_the_node(
    driver: KvmHypervisor, broken_qemu: dict[str, Any], name: str, value: str
) -> None:
    with pytest.raises(errors.HypervisorError, match=f"{name} {value}"):
        driver.check_params({**broken_qemu, name: value})


def test_spice_over_tls_needs_the_certificates(
    driver: KvmHypervisor, broken_qemu: dict[str, Any]
) -> None:
    wanted = {**broken_qemu, "spice_bind": "127.0.0.1", "spice_use_tls": True}
    with pytest.raises(errors.HypervisorError, match=r"spice\.pem is missing on this node"):
        driver.check_params(wanted)
    driver.paths.data.mkdir(parents=True)
    for name in ("spice.pem", "spice-ca.pem"):
        (driver.paths.data / name).write_text("x")
    driver.check_params(wanted)


@pytest.mark.parametrize(
    ("protocol", "content", "wanted"),
    [
        ("vnc", "sesame\nsecond line\n", "sesame"),
        ("vnc", "a long password\n", "a long p"),
        ("spice", "a long password\n", "a long password"),
    ],
)
def test_passwords(tmp_path: Path, protocol: str, content: str, wanted: str) -> None:
    path = tmp_path / "secret"
    path.write_text(content)
    bind = {"vnc": "vnc_bind_address", "spice": "spice_bind"}[protocol]
    params = load({bind: "127.0.0.1", f"{protocol}_password_file": str(path)})
    assert inputs.password(params, protocol) == wanted


@pytest.mark.parametrize(
    ("content", "text"), [(b"", "is empty"), (b"\n", "is empty"), (b"\xff", "cannot be read")]
)
def test_password_files_that_cannot_be_used(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    params = load({"spice_bind": "127.0.0.1", "spice_password_file": str(path)})
    with pytest.raises(errors.HypervisorError, match=text):
        inputs.password(params, "spice")
    path.write_text("x" * 60)
    with pytest.raises(errors.HypervisorError, match="at most 59"):
        inputs.password(params, "spice")


def test_qemu_that_never_gets_ready_is_ended(tmp_path: Path) -> None:
    with pytest.raises(errors.HypervisorError, match=r"did not get ready in 0\.2 s"):
        launch.launch(["sleep", "30"], directory=tmp_path, pid_file=tmp_path / "p", timeout=0.2)


def test_reboot_and_balloon_of_what_does_not_run(
    driver: KvmHypervisor, broken_qemu: dict[str, Any]
) -> None:
    for call in (
        lambda: driver.reboot(instance(broken_qemu), []),
        lambda: driver.balloon(instance(broken_qemu), 64),
    ):
        with pytest.raises(errors.HypervisorError, match="does not run on this node"):
            call()


def test_nodes_pay_only_for_what_they_use() -> None:
    """With the fake driver no QEMU code is loaded; with the other, no asyncio until it talks."""
    program = (
        "import sys\n"
        "import ganeti.node.daemon\n"
        "from ganeti.hypervisor.registry import HYPERVISORS\n"
        "def has(*names): return [n for n in names if n in sys.modules]\n"
        "HYPERVISORS.get('fake')\n"
        "print(has('asyncio', 'qemu', 'qemu.qmp', 'ganeti.hypervisor.kvm.driver'))\n"
        "HYPERVISORS.get('kvm')\n"
        "print(has('asyncio', 'qemu', 'qemu.qmp'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.split("\n")[:2] == ["[]", "[]"], done.stderr
