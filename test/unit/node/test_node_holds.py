"""Guests that are paused: for as long as the master wants, but never for ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from local_node import LocalNode
from node_samples import INSTANCE, disk, instance, misbehave
from waiting import wait_for

from ganeti import errors
from ganeti.hypervisor.fake import FakeHypervisor
from ganeti.model.enums import Consistency
from ganeti.node.context import NodeContext
from ganeti.node.holds import Holds
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeInstance


@pytest.fixture
def guest(node: LocalNode, paths: Paths) -> NodeInstance:
    """An instance that runs."""
    item = disk(paths)
    made = instance(item)
    node.blockdev_create(item, 4, INSTANCE, True, "", False)
    node.blockdev_assemble(item, made, True, 0)
    node.instance_start(made, False, [])
    return made


@pytest.fixture
def changes(context: NodeContext) -> Callable[[], list[str]]:
    """What was done to the guest."""
    driver: Any = context.hypervisor("fake")
    assert isinstance(driver, FakeHypervisor)
    return lambda: driver.changes(INSTANCE)


def test_a_guest_stands_still_until_it_is_released(
    node: LocalNode, guest: NodeInstance, changes: Callable[[], list[str]]
) -> None:
    assert node.instance_hold(guest, 30.0) is Consistency.CRASH
    assert changes() == ["hold -"]
    assert node.instance_release(guest) is True
    assert changes() == ["hold -", "release -"]
    assert node.instance_release(guest) is False
    assert changes() == ["hold -", "release -"]


def test_a_master_that_never_comes_back_costs_the_guest_the_time_limit(
    node: LocalNode, guest: NodeInstance, changes: Callable[[], list[str]]
) -> None:
    node.instance_hold(guest, 0.05)
    wait_for(lambda: changes() == ["hold -", "release -"], "the guest was released")
    assert node.instance_release(guest) is False


def test_the_next_daemon_releases_whom_a_killed_one_held(
    context: NodeContext, paths: Paths, guest: NodeInstance, changes: Callable[[], list[str]]
) -> None:
    note = paths.held_guests / INSTANCE
    note.parent.mkdir()
    note.write_text("fake")
    Holds(context).start()
    assert changes() == ["release -"]
    assert not note.exists()


def test_a_daemon_that_stops_releases_all(
    node: LocalNode, guest: NodeInstance, changes: Callable[[], list[str]]
) -> None:
    node.instance_hold(guest, 30.0)
    node.stop()
    assert changes() == ["hold -", "release -"]


def test_a_guest_that_cannot_be_held_runs_on(
    node: LocalNode, paths: Paths, guest: NodeInstance, changes: Callable[[], list[str]]
) -> None:
    misbehave(paths, hold={INSTANCE: {"fail": "no monitor"}})
    with pytest.raises(errors.HypervisorError, match="no monitor"):
        node.instance_hold(guest, 30.0)
    assert changes() == ["release -"]
    assert not (paths.held_guests / INSTANCE).exists()


def test_what_cannot_be_held(node: LocalNode, paths: Paths) -> None:
    chroot = instance(disk(paths), hypervisor="chroot")
    with pytest.raises(errors.HypervisorError, match="chroot cannot pause a guest"):
        node.instance_hold(chroot, 30.0)
    with pytest.raises(errors.HypervisorError, match="does not run"):
        node.instance_hold(instance(disk(paths)), 30.0)
    with pytest.raises(errors.ParameterError, match="the limit is 60 s"):
        node.instance_hold(instance(disk(paths)), 61.0)
