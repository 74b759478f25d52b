"""The accelerator: tried once, remembered, told once; QEMU is a small program here."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ganeti.hypervisor.kvm import accel, probe_image
from ganeti.hypervisor.kvm.binary import Binary
from ganeti.hypervisor.kvm.params import KvmParams

GOOD = f"exit {probe_image.EXIT_STATUS}"


class Node:
    """A node whose QEMU does ``what`` and notes every run."""

    def __init__(self, root: Path, what: str = GOOD, device: bool = True) -> None:
        self.root = root
        self.program = root / "kvm"
        self.device = root / "dev-kvm"
        if device:
            self.device.write_text("")
        self.does(what)
        self.chooser = accel.Chooser(root / "run" / "accel.json", self.device)

    def does(self, what: str) -> None:
        self.program.write_text(f"#!/bin/sh\necho run >> {self.root}/runs\n{what}\n")
        self.program.chmod(0o755)

    @property
    def runs(self) -> int:
        path = self.root / "runs"
        return len(path.read_text().split()) if path.exists() else 0

    def choose(self, stamp: str = "1", **chosen: Any) -> accel.Choice:
        binary = Binary(
            path=str(self.program),
            stamp=stamp,
            version=(7, 2),
            default_machine="pc",
            machines=(),
            aliases={},
            sandbox=False,
        )
        return self.chooser.choose(KvmParams(**chosen), binary)


def test_good_probe_is_remembered(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert [node.choose() for _ in range(3)] == [accel.Choice("kvm")] * 3
    assert node.runs == 1
    node.chooser = accel.Chooser(node.chooser.cache, node.device)
    assert node.choose() == accel.Choice("kvm")
    assert node.runs == 1, "a restarted daemon tried again"


def test_a_device_that_udev_has_touched_is_the_same(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.choose()
    os.utime(node.device, (1, 1))  # as udev does when a virtual machine begins or ends
    assert node.choose() == accel.Choice("kvm")
    assert node.runs == 1


def test_bad_probe_is_remembered_and_told_once(tmp_path: Path, caplog: Any) -> None:
    node = Node(tmp_path, "echo 'no such luck' >&2; exit 1")
    first, second = node.choose(), node.choose()
    assert (first.accelerator, second.accelerator) == ("tcg", "tcg")
    assert "no such luck" in (first.warning or "")
    assert str(node.chooser.cache) in (first.warning or "")
    assert second.warning is None
    assert node.runs == 1
    assert [r.message for r in caplog.records if "software emulation" in r.message] == [
        first.warning
    ]


def test_new_qemu_or_new_device_is_tried_again(tmp_path: Path) -> None:
    node = Node(tmp_path, "exit 1")
    assert node.choose().accelerator == "tcg"
    node.does(GOOD)
    assert node.choose().accelerator == "tcg"
    assert node.choose(stamp="2").accelerator == "kvm"
    node.device.unlink()
    missing = node.choose(stamp="2")
    assert (missing.accelerator, node.runs) == ("tcg", 2)
    assert "dev-kvm cannot be opened" in (missing.warning or "")


def test_another_boot_is_tried_again(tmp_path: Path, monkeypatch: Any) -> None:
    node = Node(tmp_path)
    node.choose()
    monkeypatch.setattr("ganeti.base.boot.read_id", lambda: "another")
    node.choose()
    assert node.runs == 2


@pytest.mark.parametrize("text", ["", "{", '{"key": 5}'])
def test_damaged_memory_is_written_anew(tmp_path: Path, text: str) -> None:
    node = Node(tmp_path)
    node.chooser.cache.parent.mkdir()
    node.chooser.cache.write_text(text)
    assert node.choose().accelerator == "kvm"


@pytest.mark.parametrize(
    ("chosen", "wanted"),
    [
        ({"accelerator": "kvm"}, "kvm"),
        ({"accelerator": "tcg"}, "tcg"),
        ({"kvm_flag": "enabled"}, "kvm"),
        ({"kvm_flag": "disabled"}, "tcg"),
        ({"kvm_flag": "disabled", "accelerator": "tcg"}, "tcg"),
    ],
)
def test_wish_is_obeyed_without_trying(tmp_path: Path, chosen: dict[str, str], wanted: str) -> None:
    node = Node(tmp_path, "exit 1")
    assert node.choose(**chosen) == accel.Choice(wanted)
    assert node.runs == 0


def test_callers_at_the_same_time_share_one_probe(tmp_path: Path) -> None:
    node = Node(tmp_path, "sleep 0.3; exit 1")
    found: list[accel.Choice] = []
    threads = [threading.Thread(target=lambda: found.append(node.choose())) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert {choice.accelerator for choice in found} == {"tcg"}
    assert node.runs == 1
    assert sum(choice.warning is not None for choice in found) == 1


def test_stuck_guest_ends_the_probe_at_once(tmp_path: Path) -> None:
    node = Node(tmp_path, "echo 'KVM internal error. Suberror: 1' >&2; sleep 30")
    begin = time.monotonic()
    reason = accel.probe(str(node.program), "kvm", 10)
    assert time.monotonic() - begin < 5
    assert "cannot execute what a kernel needs" in (reason or "")


def test_probe_that_never_ends_is_killed(tmp_path: Path) -> None:
    node = Node(tmp_path, "exec sleep 30")
    begin = time.monotonic()
    reason = accel.probe(str(node.program), "kvm", 0.2)
    assert 0.3 < time.monotonic() - begin < 5
    assert "did not end" in (reason or "")
    assert node.runs == 2, "a node that was busy gets a second chance"


def test_qemu_that_cannot_be_started(tmp_path: Path) -> None:
    assert "cannot be started" in (accel.probe(str(tmp_path / "none"), "kvm", 1) or "")


def test_image_is_a_firmware() -> None:
    image = probe_image.build()
    assert len(image) == 0x10000
    assert image[-16] == 0xEA, "the reset vector is a far jump"
