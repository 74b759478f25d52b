"""Instances on a node: started, stopped, rebooted, one call at a time for each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from local_node import LocalNode
from node_samples import INSTANCE, disk, instance, misbehave, prepare_instance, renew_right

from ganeti import errors
from ganeti.base import jsonio
from ganeti.node import context as node_context
from ganeti.node.context import NamedLocks, NodeContext
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeInstance

REASON = [["gnt:user", "because", 1234567890]]


def start(node: LocalNode, item: NodeInstance) -> None:
    node.instance_start(item, False, REASON)


def test_a_started_instance_is_listed_with_its_state(node: LocalNode, paths: Paths) -> None:
    start(node, prepare_instance(node, paths))
    assert node.instance_list(["fake"], {}) == [INSTANCE]
    info = node.instance_info(INSTANCE, "fake", {})
    assert (info["memory"], info["vcpus"], info["state"]) == (256, 2, 0)
    assert node.all_instances_info(["fake"], {})[INSTANCE].memory == 256


def test_what_does_not_run_is_not_listed(node: LocalNode) -> None:
    assert node.instance_list(["fake"], {}) == []
    assert node.instance_info(INSTANCE, "fake", {}) == {}
    assert node.all_instances_info(["fake"], {}) == {}


def test_starting_twice_is_fine(node: LocalNode, paths: Paths) -> None:
    item = prepare_instance(node, paths)
    start(node, item)
    start(node, item)
    assert node.instance_list(["fake"], {}) == [INSTANCE]


def test_a_missing_disk_prevents_the_start(node: LocalNode, paths: Paths) -> None:
    with pytest.raises(errors.HypervisorError, match="disk 0 is not on this node"):
        start(node, instance(disk(paths)))
    assert node.instance_list(["fake"], {}) == []


def test_a_disk_that_is_not_activated_prevents_the_start(node: LocalNode, paths: Paths) -> None:
    item = disk(paths)
    node.blockdev_create(item, 4, INSTANCE, True, "", False)
    with pytest.raises(errors.HypervisorError, match="not activated"):
        start(node, instance(item))


def test_a_disk_outside_the_allowed_directories_prevents_the_start(
    node: LocalNode, paths: Paths
) -> None:
    bad = disk(paths, logical_id=("loop", "/etc/passwd"))
    with pytest.raises(errors.HypervisorError, match="cannot be started"):
        start(node, instance(bad))


def test_the_reason_of_the_last_change_is_kept(node: LocalNode, paths: Paths) -> None:
    start(node, prepare_instance(node, paths))
    file = paths.instance_reason / INSTANCE
    assert jsonio.loads(file.read_text()) == REASON
    assert file.stat().st_mode & 0o777 == 0o644


def test_shutdown_stops_and_may_be_repeated(node: LocalNode, paths: Paths) -> None:
    item = prepare_instance(node, paths)
    start(node, item)
    node.instance_shutdown(item, 5, [])
    assert node.instance_list(["fake"], {}) == []
    node.instance_shutdown(item, 5, [])


def test_an_instance_that_cannot_be_ended_is_an_error(node: LocalNode, paths: Paths) -> None:
    item = prepare_instance(node, paths)
    start(node, item)
    misbehave(paths, stop={"*": {"lie": True}})
    with pytest.raises(errors.HypervisorError, match="still runs although it was forced"):
        node.instance_shutdown(item, 1, [])


def test_an_instance_that_cannot_be_asked_is_ended(
    context: NodeContext, node: LocalNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = instance()
    start(node, item)
    driver = context.hypervisor("fake")
    real = driver.stop

    def deaf(name: str, *, force: bool = False, timeout: float = 0) -> None:
        if not force:
            raise errors.HypervisorError("the control socket does not answer")
        real(name, force=True)

    monkeypatch.setattr(driver, "stop", deaf)
    node.instance_shutdown(item, 5, [])
    assert node.instance_list(["fake"], {}) == []


def test_a_guest_that_ended_by_itself_is_started_anew(node: LocalNode, paths: Paths) -> None:
    item = prepare_instance(node, paths)
    start(node, item)
    misbehave(paths, info={INSTANCE: {"lie": {"state": 1}}})
    start(node, renew_right(item))
    misbehave(paths)
    assert node.instance_info(INSTANCE, "fake", {})["state"] == 0


def test_soft_reboot_keeps_and_hard_reboot_replaces_the_guest(
    node: LocalNode, paths: Paths
) -> None:
    item = prepare_instance(node, paths)
    start(node, item)
    file = paths.fake_hypervisor / INSTANCE
    before = file.stat().st_ino
    node.instance_reboot(item, "soft", 5, [])
    assert file.stat().st_ino == before
    kept = paths.run / "kept"
    kept.hardlink_to(file)
    node.instance_reboot(item, "hard", 5, [])
    assert file.stat().st_ino != before


@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_what_does_not_run_cannot_be_rebooted(node: LocalNode, paths: Paths, kind: str) -> None:
    with pytest.raises(errors.HypervisorError, match="does not run"):
        node.instance_reboot(prepare_instance(node, paths), kind, 5, [])


def test_a_full_reboot_is_not_for_a_node(node: LocalNode, paths: Paths) -> None:
    with pytest.raises(errors.ParameterError, match="soft and hard"):
        node.instance_reboot(prepare_instance(node, paths), "full", 5, [])


def test_consoles_are_told_by_instance(node: LocalNode, paths: Paths) -> None:
    item = instance()
    found = node.instance_console_info({INSTANCE: (item, "node1.example.com")})
    assert found[INSTANCE].kind == "msg"


def test_an_unknown_hypervisor_is_named(node: LocalNode) -> None:
    with pytest.raises(errors.ParameterError, match="nosuch"):
        node.instance_list(["nosuch"], {})


def test_bad_hypervisor_parameters_are_refused(node: LocalNode) -> None:
    node.hypervisor_validate_params("fake", {"migration_mode": "live"})
    with pytest.raises(errors.HypervisorError):
        node.hypervisor_validate_params("fake", {"migration_mode": "sideways"})


@pytest.mark.parametrize("name", ["../../etc/x", "", ".hidden", "a/b", "a\0b", "x" * 300])
def test_names_that_would_leave_their_directory_are_refused(
    node: LocalNode, paths: Paths, name: str
) -> None:
    bad = instance(name=name)
    for attempt in (
        lambda: node.instance_start(bad, False, REASON),
        lambda: node.instance_shutdown(bad, 0, REASON),
        lambda: node.instance_reboot(bad, "hard", 0, REASON),
        lambda: node.instance_info(name, "fake", {}),
    ):
        with pytest.raises(errors.ParameterError, match="is not an instance name"):
            attempt()
    assert not paths.instance_reason.exists()


# one call at a time


def in_thread(action: Callable[..., Any], *args: Any) -> tuple[threading.Thread, list[Any]]:
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(action(*args))
        except errors.GanetiError as err:
            outcome.append(err)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, outcome


def test_two_starts_at_the_same_time_both_succeed(node: LocalNode, paths: Paths) -> None:
    # Without mutual exclusion the second would be told that the guest runs already.
    item = prepare_instance(node, paths)
    misbehave(paths, start={"*": {"delay": 0.2}})
    started = [in_thread(node.instance_start, item, False, []) for _ in range(4)]
    for thread, _ in started:
        thread.join(10)
    assert [outcome for _, outcome in started] == [[None]] * 4
    assert node.instance_list(["fake"], {}) == [INSTANCE]


def test_other_instances_do_not_wait(node: LocalNode, paths: Paths) -> None:
    misbehave(paths, start={"slow": {"delay": 0.5}})
    thread, outcome = in_thread(node.instance_start, instance(name="slow", uuid="slow"), False, [])
    node.instance_start(instance(name="quick", uuid="quick"), False, [])
    assert outcome == []
    assert "quick" in node.instance_list(["fake"], {})
    thread.join(10)
    assert outcome == [None]


def test_a_call_that_waits_too_long_tells_for_what(
    context: NodeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_context, "INSTANCE_WAIT", 0.05)
    with (
        context.instance(INSTANCE, "shutdown"),
        pytest.raises(errors.LockError, match=r"start of web1.* shutdown of it has been running"),
        context.instance(INSTANCE, "start"),
    ):
        raise AssertionError("both calls run")
    with context.instance(INSTANCE, "start"):
        pass


def test_a_mutex_is_free_again_after_an_error() -> None:
    locks = NamedLocks()
    with pytest.raises(ZeroDivisionError), locks.hold("a", "test", 1):
        raise ZeroDivisionError
    with locks.hold("a", "test", 0):
        pass
