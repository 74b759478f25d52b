"""Disks of guests of kvm that others take the place of, while the guests write numbers."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import writing_guest
from rack import Rack

from ganeti import errors
from ganeti.base import retry
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.model.enums import DiskMode, DiskTemplate
from ganeti.rpc.objects import NodeDisk, NodeInstance

pytestmark = [pytest.mark.qemu, pytest.mark.long]

MIB = 1 << 20


@dataclass
class Guest:
    """A guest that writes the same numbers to all its disks."""

    rack: Rack
    made: NodeInstance
    disks: list[AttachedDisk]

    def make_disks(self, name: str = "new", more: int = 0) -> list[AttachedDisk]:
        """Empty disks that can take the place of those it has, or are ``more`` MiB larger."""
        found = []
        for each in self.disks:
            path = self.rack.directory / f"{name}-{each.disk.iv_name.replace('/', '')}"
            path.touch()
            os.truncate(path, os.path.getsize(each.path) + (more << 20))
            found.append(AttachedDisk(each.disk, str(path)))
        return found

    def convert(self, disks: Sequence[AttachedDisk], bandwidth: int = 0) -> None:
        self.rack.driver.convert_disks(self.made.name, disks, bandwidth)

    def wait_ready(self) -> None:
        for _ in range(60):
            found = self.rack.driver.disk_progress(self.made.name)
            assert not any(disk.error for disk in found), found
            if all(disk.ready for disk in found):
                return
        raise AssertionError(f"the copies do not get complete: {found}")

    def settle(self, disks: Sequence[AttachedDisk]) -> None:
        paths = {each.disk.uuid: each.path for each in disks}
        self.rack.driver.settle_disks(self.made.name, paths)

    @property
    def numbers(self) -> list[int]:
        return writing_guest.list_numbers(self.rack.serial_log(self.made))

    def wait_for_numbers(self, count: int = 20) -> None:
        wanted = len(self.numbers) + count
        retry.retry_until(lambda: len(self.numbers) >= wanted or None, timeout=60, largest=0.2)

    def check_numbers(self) -> None:
        numbers = self.numbers
        assert numbers == list(range(1, len(numbers) + 1)), "numbers are missing, or came twice"

    def check_stopped(self, disks: Sequence[AttachedDisk]) -> None:
        """End it and check the disks that it used last."""
        self.rack.driver.stop(self.made.name, force=True)
        self.rack.driver.cleanup(self.made.name)
        self.check_disks(disks)

    def check_disks(self, disks: Sequence[AttachedDisk]) -> None:
        numbers = self.numbers
        for each in disks:
            if each.disk.mode is not DiskMode.RO:
                assert numbers[-1] <= writing_guest.check_disk(Path(each.path)) <= numbers[-1] + 1


def start(
    rack: Rack, *, disks: int = 1, rate: int = 4, full: bool = False, **hvparams: object
) -> Guest:
    made = rack.instance(**hvparams)
    found = []
    for index in range(disks):
        disk = NodeDisk(
            uuid=f"6e9ea7f8-1c2d-4c3a-9b39-00000000000{index}",
            dev_type=DiskTemplate.FILE,
            logical_id=(),
            iv_name=f"disk/{index}",
            size=17,
        )
        path = writing_guest.install(rack.directory / f"disk{index}", rate, disks, full=full)
        found.append(AttachedDisk(disk, str(path)))
    rack.driver.start(made, found)
    rack.wait_hello(made)
    return Guest(rack, made, found)


def test_two_disks_of_a_writing_guest_are_replaced_and_replaced_again(kvm: Rack) -> None:
    guest = start(kvm, disks=2, rate=20)
    before = guest.disks
    for number in range(3):
        new = guest.make_disks(f"new{number}", more=number)
        guest.wait_for_numbers()
        guest.convert(new)
        guest.wait_ready()
        guest.wait_for_numbers()
        guest.settle(new)
        kept = [Path(each.path).read_bytes() for each in before]
        guest.wait_for_numbers()
        assert [Path(each.path).read_bytes() for each in before] == kept, "it uses the old ones"
        before = new
    guest.check_numbers()
    guest.check_stopped(new)
    used = [os.stat(each.path).st_blocks * 512 for each in new]
    assert max(used) < 5 * MIB, "holes were filled"
    assert kvm.list_leftovers() == []


def test_a_copy_is_ended_and_the_guest_keeps_its_disk(kvm: Rack) -> None:
    guest = start(kvm, full=True)
    guest.convert(guest.make_disks(), bandwidth=1)
    [found] = kvm.driver.disk_progress(guest.made.name)
    assert not found.ready
    assert found.left > 0
    with pytest.raises(errors.HypervisorError, match="bytes are left"):
        guest.settle(guest.make_disks())
    guest.wait_for_numbers()
    for _ in range(2):
        guest.settle(guest.disks)
    guest.wait_for_numbers()
    # and a second attempt
    new = guest.make_disks("other")
    guest.convert(new)
    guest.wait_ready()
    guest.settle(new)
    guest.wait_for_numbers()
    guest.check_numbers()
    guest.check_stopped(new)


def test_the_guest_is_killed_when_both_disks_are_the_same(kvm: Rack) -> None:
    """Whichever the configuration names then, no number is missing."""
    guest = start(kvm, rate=20)
    new = guest.make_disks()
    guest.convert(new)
    guest.wait_ready()
    guest.wait_for_numbers(100)
    kvm.crash(guest.made.name)
    guest.settle(new)
    guest.check_disks([*guest.disks, *new])
    kvm.driver.cleanup(guest.made.name)


def test_restarted_daemons_go_on(kvm: Rack) -> None:
    guest = start(kvm)
    new = guest.make_disks()
    guest.convert(new)
    kvm.driver = kvm.make_driver()
    guest.wait_ready()
    kvm.driver = kvm.make_driver()
    guest.settle(new)
    kvm.driver = kvm.make_driver()
    guest.settle(new)
    guest.wait_for_numbers()
    guest.check_numbers()
    guest.check_stopped(new)


@pytest.mark.parametrize("notes", [0, 1])
def test_the_end_of_a_conversion_is_done_again_after_a_kill(
    kvm: Rack, monkeypatch: pytest.MonkeyPatch, notes: int
) -> None:
    """QEMU uses the new disk, but the daemon has not noted that yet, or not all of it."""
    guest = start(kvm)
    new = guest.make_disks()
    guest.convert(new)
    guest.wait_ready()

    store, left = kvm.driver.store, [None] * notes  # type: ignore[attr-defined]
    save = store.save

    def die(runtime: object) -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        save(runtime)

    with monkeypatch.context() as patch:
        patch.setattr(store, "save", die)
        with pytest.raises(KeyboardInterrupt):
            guest.settle(new)
    guest.wait_for_numbers()
    kvm.driver = kvm.make_driver()
    with pytest.raises(errors.HypervisorError, match="uses its new disks already"):
        guest.settle(guest.disks)
    guest.settle(new)
    guest.wait_for_numbers()
    guest.check_numbers()
    guest.check_stopped(new)


def test_what_cannot_be_converted(kvm: Rack) -> None:
    guest = start(kvm)
    [small] = guest.make_disks()
    os.truncate(small.path, 16 * MIB)
    with pytest.raises(errors.HypervisorError, match="but only 16777216 on the target"):
        guest.convert([small])
    [new] = guest.make_disks("there")
    with pytest.raises(errors.HypervisorError, match="opened by its address"):
        guest.convert([AttachedDisk(new.disk, "", "rbd:pool/image")])
    with pytest.raises(errors.HypervisorError, match="does not run on this node"):
        kvm.driver.convert_disks("other.example.com", [new], 0)
    guest.settle(guest.disks)
    kvm.driver.check_migratable(guest.made)
    guest.wait_for_numbers()
    guest.check_stopped(guest.disks)


@pytest.mark.root
def test_with_less_privilege(kvm: Rack) -> None:
    if os.geteuid():
        pytest.skip("only root can give up privileges")
    guest = start(kvm, security_model="user", security_domain="nobody", use_chroot=True)
    new = guest.make_disks()
    guest.convert(new)
    guest.wait_ready()
    guest.settle(new)
    guest.wait_for_numbers()
    time.sleep(0.2)
    guest.check_numbers()
    guest.check_stopped(new)
    assert kvm.list_leftovers() == []
