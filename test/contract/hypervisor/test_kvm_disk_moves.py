"""Live migration of kvm guests with their disks, while they write numbers all the time."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import writing_guest
from kvm_pair import Pair
from rack import Rack

from ganeti import errors
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.model.enums import DiskMode, DiskTemplate, MigrationState
from ganeti.rpc.objects import NodeDisk, NodeInstance

pytestmark = [pytest.mark.qemu, pytest.mark.long]


@dataclass
class Move:
    """A guest with disks of its own on each of two nodes."""

    pair: Pair
    made: NodeInstance
    #: as they are on the source and on the target
    here: list[AttachedDisk]
    there: list[AttachedDisk]

    @property
    def uuids(self) -> list[Any]:
        return [disk.disk.uuid for disk in self.here]

    def accept(self, **info: Any) -> dict[str, Any]:
        known = self.pair.source.driver.migration_info(self.made)
        known |= {"with_disks": True, **info}
        self.where = self.pair.target.driver.accept(self.made, self.there, known, "127.0.0.1")
        return known

    def send(self, bandwidth: int = 0) -> None:
        target = self.pair.target.driver.receive_disks(self.made.name, self.uuids, "127.0.0.1")
        self.pair.source.driver.send_disks(self.made.name, self.uuids, target, bandwidth)

    def wait_ready(self) -> None:
        for _ in range(30):
            found = self.pair.source.driver.disk_progress(self.made.name)
            assert not any(disk.error for disk in found), found
            if all(disk.ready for disk in found):
                return
        raise AssertionError(f"the disks do not get ready: {found}")

    def begin(self) -> dict[str, Any]:
        info = self.accept()
        self.send()
        self.wait_ready()
        self.pair.source.driver.migrate(self.made, self.where, live=True)
        return info

    def run(self) -> None:
        info = self.begin()
        found = self.pair.await_end(self.made)
        assert found.status is MigrationState.COMPLETED, found
        self.pair.target.driver.finish_target(self.made, info, success=True)
        self.pair.source.driver.finish_source(self.made, success=True, live=True)

    def check_stopped(self, rack: Rack) -> None:
        """End the guest and check its disks."""
        rack.driver.stop(self.made.name, force=True)
        rack.driver.cleanup(self.made.name)
        numbers = self.read_numbers(rack)
        for disk in self.here if rack is self.pair.source else self.there:
            if disk.disk.mode is DiskMode.RO:
                continue
            assert numbers[-1] <= writing_guest.check_disk(Path(disk.path)) <= numbers[-1] + 1

    def read_numbers(self, rack: Rack) -> list[int]:
        return writing_guest.list_numbers(rack.serial_log(self.made))

    def wait_for_numbers(self, rack: Rack, count: int = 20) -> None:
        self.pair.wait_letters(rack, self.made, count * 10)

    @property
    def both(self) -> list[int]:
        """On both lines: a guest that moves may say a half of a number on each."""
        serial = (rack.serial_log(self.made) for rack in (self.pair.source, self.pair.target))
        return writing_guest.list_numbers("".join(serial))


def make(
    pair: Pair,
    disks: int = 1,
    rate: int = 4,
    mode: DiskMode = DiskMode.RW,
    full: bool = False,
    **hvparams: Any,
) -> Move:
    """A guest that runs at the source; ``mode`` is that of its last disk."""
    made = pair.instance(**hvparams)
    here, there = [], []
    written = disks if mode is DiskMode.RW else disks - 1
    for index in range(disks):
        disk = NodeDisk(
            uuid=f"6e9ea7f8-1c2d-4c3a-9b39-00000000000{index}",
            dev_type=DiskTemplate.FILE,
            logical_id=(),
            iv_name=f"disk/{index}",
            size=17,
            mode=mode if index == disks - 1 else DiskMode.RW,
        )
        for rack, found in ((pair.source, here), (pair.target, there)):
            path = writing_guest.install(rack.directory / f"disk{index}", rate, written, full=full)
            found.append(AttachedDisk(disk, str(path)))
            if rack is pair.target:
                path.write_bytes(b"old" * (path.stat().st_size // 3 + 1))
                os.truncate(path, writing_guest.SIZE << 20)
    pair.source.driver.start(made, here)
    pair.source.wait_hello(made)
    return Move(pair, made, here, there)


def test_a_writing_guest_moves_with_two_disks(pair: Pair) -> None:
    move = make(pair, disks=2, rate=20)
    move.wait_for_numbers(pair.source, 300)
    move.run()
    move.wait_for_numbers(pair.target)
    assert pair.source.driver.info(move.made.name) is None
    assert pair.source.list_leftovers() == []
    numbers = move.both
    assert numbers == list(range(1, len(numbers) + 1)), "numbers are missing, or came twice"
    # It runs on its new disks alone.
    before = [Path(disk.path).read_bytes() for disk in move.here]
    move.wait_for_numbers(pair.target)
    assert [Path(disk.path).read_bytes() for disk in move.here] == before
    move.check_stopped(pair.target)
    used = [os.stat(disk.path).st_blocks * 512 for disk in move.there]
    assert max(used) < 5 << 20, "holes were filled"


def test_a_guest_that_is_started_again_repeats_its_last_number(pair: Pair) -> None:
    """What the other tests rely on: the disk has the number that the guest printed last."""
    move = make(pair)
    move.wait_for_numbers(pair.source)
    pair.source.crash(move.made.name)
    before = move.read_numbers(pair.source)
    pair.source.driver.start(move.made, move.here)
    move.wait_for_numbers(pair.source)
    after = move.read_numbers(pair.source)[len(before) :]
    assert after[0] in (before[-1], before[-1] + 1)
    move.check_stopped(pair.source)


def test_a_disk_of_the_target_may_be_larger(pair: Pair) -> None:
    """Volumes are rounded up to the extents of their group."""
    move = make(pair)
    os.truncate(move.there[0].path, (writing_guest.SIZE << 20) + (3 << 20))
    move.wait_for_numbers(pair.source)
    move.run()
    move.wait_for_numbers(pair.target)
    move.check_stopped(pair.target)
    assert os.path.getsize(move.there[0].path) == (writing_guest.SIZE + 3) << 20


def test_the_target_dies_while_it_receives(pair: Pair) -> None:
    move = make(pair, full=True)
    info = move.accept()
    move.send(bandwidth=1)
    pair.target.crash(move.made.name)
    for _ in range(10):
        [found] = pair.source.driver.disk_progress(move.made.name)
        assert not found.ready
        if found.error is not None:
            break
    assert found.error is not None
    pair.target.driver.finish_target(move.made, info, success=False)
    for _ in range(2):
        pair.source.driver.finish_source(move.made, success=False, live=True)
    move.wait_for_numbers(pair.source)
    pair.source.driver.check_migratable(move.made)
    # and a second attempt
    move.run()
    move.wait_for_numbers(pair.target)
    move.check_stopped(pair.target)


def test_the_target_dies_while_the_memory_follows(pair: Pair) -> None:
    move = make(pair, migration_bandwidth=1)
    info = move.begin()
    pair.target.crash(move.made.name)
    found = pair.await_end(move.made)
    assert found.status is MigrationState.FAILED
    pair.target.driver.finish_target(move.made, info, success=False)
    pair.source.driver.finish_source(move.made, success=False, live=True)
    move.wait_for_numbers(pair.source)
    numbers = move.both
    assert numbers == list(range(1, len(numbers) + 1))
    move.check_stopped(pair.source)


def test_a_disk_that_does_not_arrive_keeps_the_guest_here(pair: Pair) -> None:
    """Only the connection of the disks is lost: the memory must not go without them."""
    move = make(pair, migration_bandwidth=1)
    info = move.begin()
    with pair.target.driver.store.control(move.made.name) as qmp:  # type: ignore[attr-defined]
        qmp.command("nbd-server-stop")
    found = pair.await_end(move.made)
    assert found.status is MigrationState.FAILED
    assert re.search("was not sent|the connection was probably lost", str(found.error))
    pair.target.driver.finish_target(move.made, info, success=False)
    pair.source.driver.finish_source(move.made, success=False, live=True)
    move.wait_for_numbers(pair.source)
    move.check_stopped(pair.source)


def test_all_has_arrived_but_the_target_does_not_get_the_guest(pair: Pair) -> None:
    move = make(pair)
    info = move.begin()
    found = pair.await_end(move.made)
    assert found.status is MigrationState.COMPLETED, found
    pair.target.driver.finish_target(move.made, info, success=False)
    pair.source.driver.finish_source(move.made, success=False, live=True)
    move.wait_for_numbers(pair.source)
    numbers = move.both
    assert numbers == list(range(1, len(numbers) + 1))
    move.check_stopped(pair.source)


def test_a_target_that_hangs(pair: Pair) -> None:
    """The jobs are ended all the same, and the guest writes on."""
    move = make(pair)
    move.accept()
    move.send()
    move.wait_ready()
    with pair.target.freeze(move.made.name):
        time.sleep(0.5)  # writes are on their way now
        pair.source.driver.finish_source(move.made, success=False, live=True)
        move.wait_for_numbers(pair.source)
    move.check_stopped(pair.source)


def test_restarted_daemons_go_on(pair: Pair) -> None:
    move = make(pair)
    info = move.accept()
    pair.restart_daemons()
    move.send()
    pair.restart_daemons()
    move.wait_ready()
    pair.restart_daemons()
    pair.source.driver.migrate(move.made, move.where, live=True)
    pair.restart_daemons()
    assert pair.await_end(move.made).status is MigrationState.COMPLETED
    pair.restart_daemons()
    pair.target.driver.finish_target(move.made, info, success=True)
    pair.restart_daemons()
    pair.source.driver.finish_source(move.made, success=True, live=True)
    move.wait_for_numbers(pair.target)
    move.check_stopped(pair.target)


def test_post_copy_is_left_out(pair: Pair) -> None:
    move = make(pair, migration_caps="postcopy-ram")
    info = move.begin()
    found = pair.await_end(move.made)
    assert found.status is MigrationState.COMPLETED
    assert found.postcopy_status is None
    assert move.read_numbers(pair.target) == [], "it runs before that is on record"
    pair.target.driver.finish_target(move.made, info, success=True)
    pair.source.driver.finish_source(move.made, success=True, live=True)
    move.wait_for_numbers(pair.target)
    move.check_stopped(pair.target)


@pytest.mark.root
def test_with_less_privilege_and_a_disk_that_is_only_read(pair: Pair) -> None:
    if os.geteuid():
        pytest.skip("only root can give up privileges")
    less = {"security_model": "user", "security_domain": "nobody", "use_chroot": True}
    move = make(pair, disks=2, mode=DiskMode.RO, **less)
    Path(move.here[1].path).write_bytes(os.urandom(17 << 20))
    move.run()
    assert Path(move.there[1].path).read_bytes() == Path(move.here[1].path).read_bytes()
    move.wait_for_numbers(pair.target)
    assert pair.source.list_leftovers() == []
    move.check_stopped(pair.target)


def test_what_cannot_be_sent(pair: Pair) -> None:
    move = make(pair)
    driver, name = pair.source.driver, move.made.name
    with pytest.raises(errors.HypervisorError, match="is not awaited"):
        pair.target.driver.receive_disks(name, move.uuids, "127.0.0.1")
    with pytest.raises(errors.HypervisorError, match="nobody awaits"):
        driver.send_disks(name, move.uuids, "127.0.0.1:1", 0)
    os.truncate(move.there[0].path, 16 << 20)
    move.accept()
    with pytest.raises(errors.HypervisorError, match="but only 16777216 on the target"):
        move.send()
    assert pair.source.driver.store.find(name).runtime.move == "none"
    move.wait_for_numbers(pair.source)
    move.check_stopped(pair.source)
