"""Processors of running guests of kvm: more, fewer, pinned, and still the same after a move."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import boot_sectors
import msgspec
import pytest
from rack import Rack, make_rack

from ganeti import errors
from ganeti.model.enums import HypervisorName, MigrationState
from ganeti.rpc.objects import NodeInstance

pytestmark = pytest.mark.qemu


def with_vcpus(instance: NodeInstance, count: int, **hvparams: Any) -> NodeInstance:
    """The instance as it is to be."""
    return msgspec.structs.replace(
        instance,
        beparams={**instance.beparams, "vcpus": count},
        hvparams={**instance.hvparams, **hvparams},
    )


def threads(rack: Rack, instance: NodeInstance) -> list[int]:
    """The threads that run the guest's processors, in order."""
    with rack.driver.store.control(instance.name) as qmp:  # type: ignore[attr-defined]
        found = qmp.command("query-cpus-fast")
    return [cpu["thread-id"] for cpu in sorted(found, key=lambda cpu: cpu["cpu-index"])]


@pytest.mark.parametrize("machine", ["pc", "q35"])
def test_more_processors(kvm: Any, machine: str) -> None:
    instance = kvm.instance(max_vcpus=4, machine_version=machine)
    kvm.start(instance, boot_sectors.deaf, booted=False)
    assert len(threads(kvm, instance)) == 1
    for _ in range(2):
        kvm.driver.set_vcpus(with_vcpus(instance, 3))
    assert len(threads(kvm, instance)) == 3
    assert kvm.make_driver().info(instance.name).vcpus == 3
    with pytest.raises(errors.HotplugError, match="was started with 1 processors"):
        kvm.driver.set_vcpus(with_vcpus(instance, 0))
    with pytest.raises(errors.HotplugError, match="4 processors at most, not 5"):
        kvm.driver.set_vcpus(with_vcpus(instance, 5))
    assert len(threads(kvm, instance)) == 3


def test_a_guest_without_room_is_told(kvm: Any) -> None:
    instance = kvm.instance()
    with pytest.raises(errors.HotplugError, match="does not run"):
        kvm.driver.set_vcpus(with_vcpus(instance, 2))
    kvm.start(instance, boot_sectors.deaf, booted=False)
    with pytest.raises(errors.HotplugError, match="set the hypervisor parameter max_vcpus to 2"):
        kvm.driver.set_vcpus(with_vcpus(instance, 2))


def pretend_hardware(rack: Rack, instance: NodeInstance) -> None:
    """Let the driver believe that the node's processor runs the guest.

    In software QEMU may die some time after a processor has gone, so a test ends with that.
    """
    store = rack.driver.store  # type: ignore[attr-defined]
    store.save(msgspec.structs.replace(store.find(instance.name).runtime, accelerator="kvm"))


def test_a_processor_that_the_guest_gives_back(kvm: Any) -> None:
    instance = kvm.instance(max_vcpus=4)
    kvm.start(instance, boot_sectors.ejecting_processors)
    kvm.driver.set_vcpus(with_vcpus(instance, 3))
    with pytest.raises(errors.HotplugError, match="cannot safely take processors away"):
        kvm.driver.set_vcpus(with_vcpus(instance, 2))
    pretend_hardware(kvm, instance)
    kvm.driver.set_vcpus(with_vcpus(instance, 2))
    assert kvm.driver.info(instance.name).vcpus == len(threads(kvm, instance)) == 2
    assert len(kvm.driver.store.find(instance.name).runtime.processors) == 1


def test_a_guest_that_keeps_its_processors(kvm: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("ganeti.hypervisor.kvm.unplug._TIMEOUT", 0.3)
    instance = kvm.instance(max_vcpus=2)
    kvm.start(instance, boot_sectors.deaf)
    kvm.driver.set_vcpus(with_vcpus(instance, 2))
    pretend_hardware(kvm, instance)
    with pytest.raises(errors.HotplugError):
        kvm.driver.set_vcpus(with_vcpus(instance, 1))
    assert kvm.driver.info(instance.name).vcpus == len(threads(kvm, instance)) == 2


def test_new_processors_are_pinned(kvm: Any) -> None:
    instance = kvm.instance(max_vcpus=3, cpu_mask="0")
    kvm.start(instance, booted=False)
    kvm.driver.set_vcpus(with_vcpus(instance, 2))
    assert [os.sched_getaffinity(thread) for thread in threads(kvm, instance)] == [{0}, {0}]
    with pytest.raises(errors.HotplugError, match="has 2 masks but the instance has 3"):
        kvm.driver.set_vcpus(with_vcpus(instance, 3, cpu_mask="0:0"))
    every = os.sched_getaffinity(0)
    last = max(every)
    kvm.driver.set_vcpus(with_vcpus(instance, 3, cpu_mask=f"0:0:{last}"))
    found = [os.sched_getaffinity(thread) for thread in threads(kvm, instance)]
    assert found == [{0}, {0}, {last}]
    assert kvm.driver.store.find(instance.name).runtime.params.cpu_mask == f"0:0:{last}"


def test_it_moves_with_its_processors(kvm: Any, tmp_path: Path) -> None:
    instance = kvm.instance(max_vcpus=4, migration_bandwidth=1000, migration_downtime=300)
    disks = kvm.start(instance, boot_sectors.deaf)
    kvm.driver.set_vcpus(with_vcpus(instance, 3))
    # the configuration asks for more than the guest has got
    known = with_vcpus(instance, 4)
    target = make_rack(HypervisorName.KVM, tmp_path / "two")
    try:
        target.instances.append(instance)
        info = kvm.driver.migration_info(known)
        where = target.driver.accept(known, disks, info, "127.0.0.1")
        kvm.driver.migrate(known, where, live=True)
        while kvm.driver.migration_status(known).status is MigrationState.ACTIVE:
            pass
        target.driver.finish_target(known, info, success=True)
        kvm.driver.finish_source(known, success=True, live=True)
        assert len(threads(target, instance)) == target.driver.info(instance.name).vcpus == 3
        target.driver.set_vcpus(known)
        assert len(threads(target, instance)) == 4
    finally:
        target.close()
