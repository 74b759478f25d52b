"""Without a lease of the master nothing starts here, and guests that may move are ended."""

from __future__ import annotations

import os
import pty
import select
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest
from jumping_clock import JumpingClock
from local_node import LocalNode
from node_samples import INSTANCE, instance, renew_right
from waiting import wait_for

from ganeti import errors
from ganeti.model import ssconf_keys
from ganeti.node.context import NodeContext
from ganeti.node.lease import NodeLease
from ganeti.node.watchdog import Watchdog, WatchdogError
from ganeti.paths import Paths
from ganeti.recovery.lease import Grant

SECONDS = 30.0


class Rig:
    """A node on the fake hypervisor, whose master calls when the test says so."""

    def __init__(self, paths: Paths) -> None:
        self.clock = JumpingClock()
        self.paths = paths
        self.node = LocalNode(NodeContext(paths, "node1.example.com", clock=self.clock))
        self.lease: NodeLease = self.node.lease
        self.lease.start()

    def restart(self) -> None:
        """The daemon is killed and started again; guests run on."""
        self.lease.stop()
        self.node = LocalNode(NodeContext(self.paths, "node1.example.com", clock=self.clock))
        self.lease = self.node.lease
        self.lease.start()

    def call(self, seconds: float = SECONDS, watchdog: str = "") -> None:
        """Two calls of the master: the second brings back the stamp of the first."""
        self.lease.take(Grant(None, seconds, watchdog))
        self.lease.take(Grant(self.lease.make_stamp(), seconds, watchdog))

    def list_ended(self, *names: str) -> None:
        path = self.paths.ssconf(ssconf_keys.HA_INSTANCES)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(names) + "\n")
        self.paths.ssconf(ssconf_keys.HYPERVISOR_LIST).write_text("fake\n")

    def runs(self) -> bool:
        return bool(self.node.instance_list(["fake"], {}) == [INSTANCE])


@pytest.fixture
def rig(paths: Paths) -> Iterator[Rig]:
    made = Rig(paths)
    yield made
    made.node.stop()


def test_where_nodes_have_no_leases_guests_start(rig: Rig) -> None:
    rig.call(seconds=0)
    rig.node.instance_start(instance(), False, [])
    assert rig.runs()


def test_a_node_starts_nothing_until_it_has_a_lease(rig: Rig) -> None:
    rig.lease.take(Grant(None, SECONDS))
    with pytest.raises(errors.RunRightError, match="has no lease of the master"):
        rig.node.instance_start(instance(), False, [])
    rig.call()
    rig.node.instance_start(instance(), False, [])
    assert rig.runs()


def test_the_lease_ends_after_two_thirds_also_when_the_machine_slept(rig: Rig) -> None:
    rig.call()
    rig.clock.ahead = SECONDS * 2 / 3 - 5
    item = instance()
    rig.node.instance_start(item, False, [])
    rig.clock.ahead = SECONDS * 2 / 3
    rig.node.instance_shutdown(item, 0, [])
    with pytest.raises(errors.RunRightError, match="has no lease"):
        rig.node.instance_start(renew_right(item), False, [])


def test_a_guest_that_may_move_is_ended_with_the_lease(rig: Rig) -> None:
    rig.list_ended(INSTANCE)
    rig.call()
    rig.node.instance_start(instance(), False, [])
    rig.clock.ahead = SECONDS * 2 / 3
    wait_for(lambda: not rig.runs(), "the guest still runs", 10)


def test_a_daemon_that_starts_again_knows_its_lease(rig: Rig) -> None:
    """It may be cut off since: nobody tells it that nodes need leases."""
    rig.list_ended(INSTANCE)
    rig.call()
    rig.node.instance_start(instance(), False, [])
    rig.restart()
    assert rig.lease.explain_refusal() == ""
    assert rig.runs()
    rig.clock.ahead = SECONDS * 2 / 3
    wait_for(lambda: not rig.runs(), "the guest still runs", 10)
    assert "has no lease" in rig.lease.explain_refusal()


def test_a_lease_that_was_given_up_stays_so(rig: Rig) -> None:
    rig.call()
    rig.call(seconds=0)
    rig.restart()
    rig.clock.ahead = SECONDS
    assert rig.lease.explain_refusal() == ""


@pytest.mark.parametrize("content", ['{"boot": "other", "begin": 1, "seconds": 30}', "damaged", ""])
def test_a_lease_of_another_boot_or_a_broken_file_counts_for_nothing(
    rig: Rig, content: str
) -> None:
    rig.call()
    rig.paths.node_lease.write_text(content)
    rig.restart()
    assert rig.lease.explain_refusal() == ""
    rig.lease.take(Grant(None, SECONDS))
    assert "has no lease" in rig.lease.explain_refusal()
    rig.call()
    rig.restart()
    assert rig.lease.explain_refusal() == ""


def test_other_guests_stay(rig: Rig) -> None:
    rig.list_ended("db1.example.com")
    rig.call()
    rig.node.instance_start(instance(), False, [])
    rig.clock.ahead = SECONDS * 2 / 3
    rig.lease._end_guests()
    assert rig.runs()


def test_a_lease_that_is_given_up_ends_no_guest(rig: Rig) -> None:
    rig.list_ended(INSTANCE)
    rig.call()
    rig.node.instance_start(instance(), False, [])
    rig.call(seconds=0)
    rig.clock.ahead = 2 * SECONDS
    assert rig.lease.explain_refusal() == ""
    rig.lease._end_guests()
    assert rig.runs()


def test_a_stamp_of_another_boot_renews_nothing(rig: Rig) -> None:
    stamp = rig.lease.make_stamp()
    rig.lease.take(Grant(type(stamp)("another boot", stamp.at), SECONDS))
    assert rig.lease.explain_refusal() != ""


class Device:
    """A terminal in place of a watchdog: what is written to it can be read."""

    def __init__(self) -> None:
        self.read_end, self._own = pty.openpty()
        tty.setraw(self._own)
        self.path = os.ttyname(self._own)
        self.seconds = 0
        self.shortest = 0

    def set_timeout(self, _fd: int, seconds: int) -> int:
        self.seconds = max(seconds, self.shortest)
        return self.seconds

    def read(self) -> bytes:
        """What was written since the last call; the kernel hands it over a moment later."""
        found = b""
        while select.select([self.read_end], [], [], 0.1)[0]:
            found += os.read(self.read_end, 1000)
        return found

    def close(self) -> None:
        os.close(self.read_end)
        os.close(self._own)


@pytest.fixture
def device() -> Iterator[Device]:
    made = Device()
    yield made
    made.close()


def test_the_watchdog_is_fed_only_with_a_lease(rig: Rig, device: Device) -> None:
    rig.lease._watchdog = Watchdog(device.set_timeout)
    rig.call(watchdog=device.path)
    rig.call(watchdog=device.path)
    assert rig.lease.make_stamp().armed
    assert (set(device.read()), device.seconds) == ({0}, 9)
    rig.clock.ahead = SECONDS * 2 / 3
    rig.lease.note_begin()
    device.read()
    rig.lease.note_begin()
    assert device.read() == b""


def test_the_watchdog_stays_on_until_the_master_knows_that_it_is_off(
    rig: Rig, device: Device
) -> None:
    rig.lease._watchdog = Watchdog(device.set_timeout)
    for _ in range(2):
        rig.call(watchdog=device.path)
    device.read()
    known_as_armed = rig.lease.make_stamp()
    rig.lease.take(Grant(known_as_armed, SECONDS, ""))
    assert b"V" not in device.read()
    assert not rig.lease.make_stamp().armed
    rig.call()
    assert device.read().endswith(b"V")


def test_another_device_waits_until_the_master_counts_on_the_first_no_longer(
    rig: Rig, device: Device
) -> None:
    rig.lease._watchdog = Watchdog(device.set_timeout)
    other = Device()
    try:
        for _ in range(2):
            rig.call(watchdog=device.path)
        known_as_armed = rig.lease.make_stamp()
        rig.lease.take(Grant(known_as_armed, SECONDS, other.path))
        assert (b"V" in device.read(), other.read()) == (False, b"")
        rig.call(watchdog=other.path)
        assert device.read().endswith(b"V")
        rig.call(watchdog=other.path)
        assert set(other.read()) == {0}
    finally:
        other.close()


def test_a_watchdog_that_is_too_slow_is_not_counted_on(device: Device) -> None:
    device.shortest = 60
    with pytest.raises(WatchdogError, match="after 60 s at the earliest, and the lease needs 9 s"):
        Watchdog(device.set_timeout).feed(device.path, 9)
    assert device.read() == b"V"


def test_a_watchdog_that_is_on_is_fed_although_it_is_too_slow_now(device: Device) -> None:
    device.shortest = 15
    dog = Watchdog(device.set_timeout)
    dog.feed(device.path, 19)
    device.read()
    with pytest.raises(WatchdogError):
        dog.feed(device.path, 9)
    assert (device.read(), device.seconds) == (b"\0", 19)
    dog.leave()


def test_a_watchdog_that_was_missing_is_tried_again(rig: Rig, tmp_path: Path) -> None:
    path, device = tmp_path / "watchdog", Device()
    rig.lease._watchdog = Watchdog(device.set_timeout)
    try:
        for _ in range(2):
            rig.call(watchdog=str(path))
        assert not rig.lease.make_stamp().armed
        assert rig.lease.find_watchdog_flaw(str(path)) == f"{path}: No such file or directory"
        path.symlink_to(device.path)
        rig.call(watchdog=str(path))
        assert device.read() == b""
        rig.clock.ahead = 60.0
        for _ in range(2):
            rig.call(watchdog=str(path))
        assert rig.lease.make_stamp().armed
        assert set(device.read()) == {0}
        assert rig.lease.find_watchdog_flaw(str(path)) == ""
    finally:
        device.close()


def test_a_watchdog_that_is_too_slow_is_named_and_not_tried_again(rig: Rig, device: Device) -> None:
    device.shortest = 60
    rig.lease._watchdog = Watchdog(device.set_timeout)
    for _ in range(2):
        rig.call(watchdog=device.path)
    assert "after 60 s at the earliest" in rig.lease.find_watchdog_flaw(device.path)
    assert device.read() == b"V"
    rig.clock.ahead = 600.0
    for _ in range(2):
        rig.call(watchdog=device.path)
    assert device.read() == b""


def test_a_file_is_no_watchdog(tmp_path: Path) -> None:
    path = tmp_path / "watchdog"
    path.write_text("precious")
    with pytest.raises(WatchdogError, match="is not a watchdog device"):
        Watchdog().feed(str(path), 9)
    with pytest.raises(WatchdogError, match="No such file"):
        Watchdog().feed(f"{path}2", 9)
    assert path.read_text() == "precious"
