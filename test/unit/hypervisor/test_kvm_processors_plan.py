"""Which processors of a running guest come and go, from QEMU's list of places."""

from __future__ import annotations

from typing import Any

import pytest

from ganeti import errors
from ganeti.hypervisor.kvm import argv, processors
from ganeti.hypervisor.kvm.params import load

#: Sockets with two cores each, as QEMU lists them: the last one first.
PLACES = [(1, 1), (1, 0), (0, 1), (0, 0)]


def answer(started: int, added: int = 0) -> list[dict[str, Any]]:
    """What QEMU says of a guest that was started with some and got some."""
    found = []
    for socket, core in PLACES:
        number = 2 * socket + core
        entry: dict[str, Any] = {
            "type": "qemu64-x86_64-cpu",
            "vcpus-count": 1,
            "props": {"core-id": core, "thread-id": 0, "socket-id": socket},
        }
        if number < started:
            entry["qom-path"] = f"/machine/unattached/device[{number}]"
        elif number < started + added:
            entry["qom-path"] = f"/machine/peripheral/cpu{number}"
        found.append(entry)
    return found


def numbers(slots: list[processors.Slot]) -> list[int]:
    return [slot.number for slot in slots]


def test_places_are_filled_from_the_first_on():
    slots = processors.order_slots(answer(1))
    assert numbers(processors.find_added(slots, 3, "web1")) == [1, 2]
    assert slots[2].device() == {
        "driver": "qemu64-x86_64-cpu",
        "id": "cpu2",
        "core-id": 0,
        "thread-id": 0,
        "socket-id": 1,
    }
    assert processors.find_added(processors.order_slots(answer(1, 2)), 2, "web1") == []
    with pytest.raises(errors.HotplugError, match="4 processors at most, not 5"):
        processors.find_added(slots, 5, "web1")


def test_places_are_emptied_from_the_last_on():
    slots = processors.order_slots(answer(1, 3))
    assert numbers(processors.find_removed(slots, 2, "web1", "kvm")) == [3, 2]
    assert processors.find_removed(slots, 4, "web1", "tcg") == []
    with pytest.raises(errors.HotplugError, match="run in software"):
        processors.find_removed(slots, 2, "web1", "tcg")
    with pytest.raises(errors.HotplugError, match="was started with 2 processors"):
        processors.find_removed(processors.order_slots(answer(2, 1)), 1, "web1", "kvm")


def test_another_node_starts_it_with_the_same_places():
    slots = processors.order_slots(answer(1, 1))
    guest = argv.Guest(
        name="web1",
        uuid="u",
        memory=64,
        vcpus=2,
        params=load({"max_vcpus": 4}),
        processors=tuple(slot.device() for slot in slots if slot.was_added),
    )
    assert list(argv._processors(guest)) == [
        "-smp",
        "1,maxcpus=4",
        "-device",
        "qemu64-x86_64-cpu,id=cpu1,core-id=1,thread-id=0,socket-id=0",
    ]
