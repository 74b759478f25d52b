"""A rack for every hypervisor driver: makes instances and disks, starts, and clears up."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trees
from kvm_pair import Pair
from rack import QEMU, TREES, TRIED, Rack, make_rack, stand_in_for_xl

from ganeti.model.enums import HypervisorName
from ganeti.paths import ROOTDIR_VARIABLE


def _descriptors() -> set[str]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
    return {entry for entry in found if not entry.endswith("/fd")}


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Fail a test that leaves a thread or a descriptor behind."""
    threads = set(threading.enumerate())
    before = _descriptors()
    yield
    assert set(threading.enumerate()) == threads
    assert _descriptors() <= before, "descriptors left"


@pytest.fixture(
    params=[
        pytest.param(name, marks=[getattr(pytest.mark, mark)] if mark else [])
        for name, mark in TRIED.items()
    ]
)
def rack(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Rack]:
    if request.param == "kvm" and QEMU is None:
        pytest.skip("no QEMU on this machine: install qemu-system-x86")
    if request.param in TREES:
        trees.need()
    if request.param == "lxc" and shutil.which("lxc-start") is None:
        pytest.skip("no LXC on this machine: install lxc")
    if request.param == "xen-pvm":
        monkeypatch.setenv(ROOTDIR_VARIABLE, str(tmp_path / "root"))
        stand_in_for_xl(tmp_path / "root", tmp_path / "xen")
    made = make_rack(HypervisorName(request.param), tmp_path)
    yield made
    made.close()


@pytest.fixture
def kvm(tmp_path: Path) -> Iterator[Rack]:
    if QEMU is None:
        pytest.skip("no QEMU on this machine: install qemu-system-x86")
    made = make_rack(HypervisorName.KVM, tmp_path)
    yield made
    made.close()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    if QEMU is None:
        pytest.skip("no QEMU on this machine: install qemu-system-x86")
    racks = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        racks.append(make_rack(HypervisorName.KVM, tmp_path / name))
    made = Pair(*racks)
    yield made
    for rack in racks:
        rack.close()
