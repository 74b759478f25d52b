"""What every hypervisor driver promises."""

from __future__ import annotations

import time
from typing import Any

import boot_sectors
import msgspec
import pytest
from rack import ELSEWHERE, TRIED

from ganeti import errors
from ganeti.hypervisor.abilities import Holding
from ganeti.hypervisor.interface import Hypervisor, NodeInfo
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model.enums import Consistency, RunState
from ganeti.rpc.objects import Console

pytestmark = [pytest.mark.long, pytest.mark.together("mounts")]


def test_every_hypervisor_is_tried_somewhere() -> None:
    assert set(HYPERVISORS.names()) == set(TRIED) | set(ELSEWHERE)


def test_started_guest_is_known(rack: Any) -> None:
    instance = rack.instance()
    rack.start(instance)
    info = rack.driver.info(instance.name)
    assert (info.memory, info.vcpus, info.state) == (16, 1, RunState.RUNNING)
    assert info.time >= 0
    assert rack.driver.list_names() == [instance.name]
    assert set(rack.driver.info_all()) == {instance.name}


def test_a_guest_that_stands_still_runs_on(rack: Any) -> None:
    if not isinstance(rack.driver, Holding):
        return
    instance = rack.instance()
    rack.start(instance, booted=False)
    assert rack.driver.hold(instance.name) is Consistency.CRASH
    assert rack.make_driver().info(instance.name) is not None
    rack.make_driver().release(instance.name)
    rack.driver.release(instance.name)
    assert rack.driver.info(instance.name).state == RunState.RUNNING
    rack.driver.stop(instance.name, force=True)
    rack.driver.release(instance.name)
    with pytest.raises(errors.HypervisorError):
        rack.driver.hold(instance.name)


def test_second_start_is_refused_and_harms_nothing(rack: Any) -> None:
    instance = rack.instance()
    disks = rack.start(instance)
    with pytest.raises(errors.HypervisorError, match="already runs"):
        rack.driver.start(instance, disks)
    assert rack.driver.info(instance.name).state == RunState.RUNNING


def test_graceful_stop_and_cleanup_leave_nothing(rack: Any) -> None:
    instance = rack.instance()
    rack.start(instance)
    rack.driver.stop(instance.name, timeout=20)
    assert rack.driver.info(instance.name) is None
    rack.driver.cleanup(instance.name)
    assert rack.driver.list_names() == []
    assert rack.list_leftovers() == []


def test_forced_stop(rack: Any) -> None:
    instance = rack.instance()
    rack.start(instance, booted=False)
    rack.driver.stop(instance.name, force=True)
    assert rack.driver.info(instance.name) is None
    assert rack.driver.info_all() == {}


def test_stop_and_cleanup_are_idempotent(rack: Any) -> None:
    instance = rack.instance()
    rack.start(instance, booted=False)
    for _ in range(2):
        rack.driver.stop(instance.name, force=True)
        rack.driver.stop(instance.name, timeout=1)
    for _ in range(2):
        rack.driver.cleanup(instance.name)
    assert rack.list_leftovers() == []


def test_guest_killed_by_hand_is_noticed(rack: Any) -> None:
    one, two = rack.instance("one"), rack.instance("two")
    disks = rack.start(one, booted=False)
    rack.start(two, booted=False)
    rack.crash("one")
    assert rack.driver.info("one") is None
    assert rack.driver.list_names() == ["two"]
    assert set(rack.make_driver().info_all()) == {"two"}
    rack.driver.stop("one", timeout=1)
    with pytest.raises(errors.HypervisorError, match="does not run"):
        rack.driver.reboot(one, disks)
    rack.driver.start(one, disks)
    assert set(rack.driver.info_all()) == {"one", "two"}
    rack.crash("one")
    rack.driver.cleanup("one")
    rack.driver.stop("two", force=True)
    rack.driver.cleanup("two")
    assert rack.list_leftovers() == []


def test_stop_is_bounded_and_force_ends_it(rack: Any) -> None:
    """Ask, wait for the time given, then end it: how the node daemon shuts a guest down."""
    instance = rack.instance()
    rack.start(instance, boot_sectors.deaf, booted=False)
    begin = time.monotonic()
    rack.driver.stop(instance.name, timeout=0.2)
    assert time.monotonic() - begin < 5
    rack.driver.stop(instance.name, force=True)
    assert rack.driver.info(instance.name) is None
    rack.driver.cleanup(instance.name)
    assert rack.list_leftovers() == []


def test_a_start_waits_for_no_poll_and_no_time_out(rack: Any) -> None:
    """Those take seconds. What is found out once is known after the first start."""
    rack.start(rack.instance("first"), booted=False)
    taken = []
    for number in range(3):
        instance = rack.instance(f"web{number}")
        disks = rack.disks(instance)
        begin = time.monotonic()
        rack.driver.start(instance, disks)
        taken.append(time.monotonic() - begin)
    assert min(taken) < 5  # bench_kvm.py measures it


def test_start_again_after_stop_without_cleanup(rack: Any) -> None:
    instance = rack.instance()
    disks = rack.start(instance, booted=False)
    rack.driver.stop(instance.name, force=True)
    rack.driver.start(instance, disks)
    assert rack.driver.info(instance.name).state == RunState.RUNNING


def test_nothing_runs_at_first(rack: Any) -> None:
    assert rack.driver.list_names() == []
    assert rack.driver.info_all() == {}
    assert rack.driver.info("web1") is None


def test_unknown_names_are_no_error_to_stop_and_clean_up(rack: Any) -> None:
    rack.driver.stop("nobody", timeout=1)
    rack.driver.stop("nobody", force=True)
    rack.driver.cleanup("nobody")
    assert rack.driver.list_names() == []
    assert rack.list_leftovers() == []


@pytest.mark.parametrize("name", ["../config.data", "", ".hidden", "a/b"])
def test_a_name_never_leads_out_of_the_directory(rack: Any, name: str) -> None:
    for call in (rack.driver.info, rack.driver.stop, rack.driver.cleanup):
        with pytest.raises(errors.HypervisorError, match="cannot be the name"):
            call(name)


def test_reboot_of_what_does_not_run_is_refused(rack: Any) -> None:
    instance = rack.instance()
    with pytest.raises(errors.HypervisorError, match="does not run"):
        rack.driver.reboot(instance, [])


def test_reboot_keeps_the_guest(rack: Any) -> None:
    instance = rack.instance()
    disks = rack.start(instance)
    rack.driver.reboot(instance, disks)
    assert rack.driver.info(instance.name).state == RunState.RUNNING
    rack.wait_hello(instance, times=2)


def test_restarted_daemon_goes_on_with_what_runs(rack: Any) -> None:
    instance = rack.instance()
    disks = rack.start(instance)
    rack.driver = rack.make_driver()
    assert set(rack.driver.info_all()) == {instance.name}
    with pytest.raises(errors.HypervisorError, match="already runs"):
        rack.driver.start(instance, disks)
    rack.driver.stop(instance.name, timeout=20)
    assert rack.driver.info(instance.name) is None


def test_two_guests_are_told_apart(rack: Any) -> None:
    one, two = rack.instance("one"), rack.instance("two")
    rack.start(one, booted=False)
    rack.start(two, booted=False)
    assert rack.driver.list_names() == ["one", "two"]
    rack.driver.stop("one", force=True)
    assert set(rack.driver.info_all()) == {"two"}


def test_unknown_parameter_is_refused(rack: Any) -> None:
    wrong = rack.instance(no_such_thing=1)
    with pytest.raises(errors.HypervisorError, match="no_such_thing"):
        rack.driver.start(wrong, [])
    with pytest.raises(errors.HypervisorError, match="no_such_thing"):
        rack.driver.check_params(wrong.hvparams)
    assert rack.driver.list_names() == []


def test_value_of_a_wrong_type_is_refused(rack: Any) -> None:
    with pytest.raises(errors.HypervisorError, match="migration_mode"):
        rack.driver.check_params({**rack.hvparams, "migration_mode": "by mule"})


def test_good_parameters_and_a_usable_node(rack: Any) -> None:
    rack.driver.check_params(rack.hvparams)
    assert rack.driver.verify(rack.hvparams) is None


def test_node_info_adds_up(rack: Any) -> None:
    info = rack.driver.node_info(rack.hvparams)
    assert isinstance(info, NodeInfo)
    assert 0 < info.memory_free <= info.memory_total
    assert 0 <= info.memory_dom0 < info.memory_total
    assert info.memory_free + info.memory_dom0 <= info.memory_total
    assert info.cpu_total >= info.cpu_sockets >= 1
    assert info.cpu_nodes >= 1


def test_console_is_complete(rack: Any) -> None:
    instance = rack.instance()
    console = rack.driver.console(instance, "node1.example.com", instance.hvparams)
    assert isinstance(console, Console)
    assert console.instance == instance.name
    if console.kind == "ssh":
        assert console.host == "node1.example.com"
        assert console.command
    else:
        assert console.kind == "msg"
        assert console.message


def test_defaults_are_accepted_by_the_driver_itself(rack: Any) -> None:
    driver: type[Hypervisor] = type(rack.driver)
    defaults = driver.defaults()
    assert msgspec.convert(defaults, driver.params) == driver.params()
    assert driver.traits.global_params <= set(defaults)
