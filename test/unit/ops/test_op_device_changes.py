"""Changes of a list of devices, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from ganeti import errors
from ganeti.opcodes.devices import DiskChange, DiskParams
from ganeti.opcodes.enums import DdmFull
from ganeti.ops.planning import device_changes
from ganeti.ops.planning.device_changes import Maker


@dataclass(frozen=True)
class Thing:
    uuid: str
    name: str | None = None
    size: int = 0


def add(index: int, params: DiskParams) -> Thing:
    return Thing(f"new-{index}", params.name, params.size or 0)


def modify(index: int, thing: Thing, params: DiskParams) -> Thing:
    return Thing(thing.uuid, params.name, thing.size)


ABC = (Thing("u-a", "a"), Thing("u-b", "b"), Thing("u-c", "c"))


def apply(*changes: tuple[str, Any, dict[str, Any]], devices: tuple[Thing, ...] = ABC) -> list[str]:
    wire = [DiskChange.from_wire(list(change)) for change in changes]
    maker: Maker[Thing, DiskParams] = Maker(add, modify, add)
    found, _steps = device_changes.apply("disk", devices, wire, maker, 4)
    return [thing.name or thing.uuid for thing in found]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([("add", -1, {"size": 1, "name": "d"})], ["a", "b", "c", "d"]),
        ([("add", 0, {"size": 1, "name": "d"})], ["d", "a", "b", "c"]),
        ([("add", 3, {"size": 1, "name": "d"})], ["a", "b", "c", "d"]),
        ([("remove", -1, {})], ["a", "b"]),
        ([("remove", 0, {}), ("remove", 0, {})], ["c"]),
        ([("remove", "u-b", {})], ["a", "c"]),
        ([("modify", "b", {"name": "x"}), ("remove", "x", {})], ["a", "c"]),
        ([("modify", 1, {"name": "x"})], ["a", "x", "c"]),
        ([("detach", "a", {}), ("attach", 1, {"name": "a"})], ["b", "a", "c"]),
        (
            [("remove", 0, {}), ("add", -1, {"size": 1, "name": "d"}), ("add", 0, {"name": "e"})],
            ["e", "b", "c", "d"],
        ),
    ],
)
def test_each_change_sees_what_the_one_before_left(changes, expected):
    assert apply(*changes) == expected


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("remove", 3, {}), "no disk 3: the instance has 3"),
        (("remove", "z", {}), "no disk with the name or uuid 'z'"),
        (("add", 5, {"size": 1}), "cannot be number 5"),
        (("add", "a", {"size": 1}), "a place by its index"),
    ],
)
def test_places_that_are_not_there(change, text):
    with pytest.raises(errors.OpPrereqError, match=text):
        apply(change)


def test_a_name_that_two_have_is_refused():
    with pytest.raises(errors.OpPrereqError, match="2 disks are called 'a'"):
        apply(("remove", "a", {}), devices=(Thing("1", "a"), Thing("2", "a")))


def test_the_limit_counts_after_each_change():
    one_more = ("add", -1, {"size": 1})
    assert len(apply(one_more)) == 4
    with pytest.raises(errors.OpPrereqError, match="at most 4 disks"):
        apply(one_more, one_more)


def test_what_cannot_be_attached():
    maker: Maker[Thing, DiskParams] = Maker(add, modify)
    for action in (DdmFull.ATTACH, DdmFull.DETACH):
        change = DiskChange(action, -1, DiskParams())
        with pytest.raises(errors.OpPrereqError, match="NIC cannot be"):
            device_changes.apply("NIC", ABC, [change], maker, 8)


def test_the_steps_tell_what_happens_to_each_device():
    wire = [
        DiskChange.from_wire(change)
        for change in (
            ["add", 1, {"size": 8, "name": "d"}],
            ["modify", "c", {"name": "x"}],
            ["remove", "a", {}],
            ["detach", "b", {}],
            ["attach", 0, {"name": "b"}],
        )
    ]
    maker: Maker[Thing, DiskParams] = Maker(add, modify, lambda _index, _params: ABC[1])
    found, steps = device_changes.apply("disk", ABC, wire, maker, 4)
    made, changed = Thing("new-1", "d", 8), Thing("u-c", "x")
    assert found == [ABC[1], made, changed]
    assert [(str(s.action), s.index, s.before, s.after) for s in steps] == [
        ("add", 1, None, made),
        ("modify", 3, ABC[2], changed),
        ("remove", 0, ABC[0], None),
        ("detach", 1, ABC[1], None),
        ("attach", 0, None, ABC[1]),
    ]
    assert [s.params for s in steps] == [change.params for change in wire]
    assert [s.device for s in steps] == [made, changed, ABC[0], ABC[1], ABC[1]]
    assert steps[1].new_device == changed
    with pytest.raises(errors.ProgrammerError, match="no device is left after 'remove'"):
        _ = steps[2].new_device


def test_a_device_is_attached_once():
    maker: Maker[Thing, DiskParams] = Maker(add, modify, lambda _index, _params: ABC[1])
    change = DiskChange(DdmFull.ATTACH, -1, DiskParams())
    with pytest.raises(errors.OpPrereqError, match="disk u-b is attached to this instance alr"):
        device_changes.apply("disk", ABC, [change], maker, 8)


@pytest.mark.parametrize(
    ("word", "index"), [(0, 0), (2, 2), (-1, 2), ("1", 1), ("-1", 2), ("a", 0), ("u-b", 1)]
)
def test_devices_are_found_by_index_name_and_uuid(word: Any, index: int):
    assert device_changes.place("disk", ABC, word) == index


@pytest.mark.parametrize(
    ("word", "text"),
    [
        (3, "there is no disk 3: the instance has 3 of them, counted from 0"),
        (-2, "there is no disk -2: the instance has 3 of them"),
        ("-2", "there is no disk -2"),
        ("z", "the instance has no disk with the name or uuid 'z'"),
    ],
)
def test_devices_that_are_not_there(word: Any, text: str):
    with pytest.raises(errors.OpPrereqError, match=text) as caught:
        device_changes.place("disk", ABC, word)
    assert caught.value.args[1] == errors.ErrorCode.NOENT
    with pytest.raises(errors.OpPrereqError, match="there is no disk 0: the instance has none"):
        device_changes.place("disk", [], 0)


def test_a_place_for_a_new_device_may_be_a_number_in_words_of_the_wire():
    assert apply(("add", "1", {"size": 1, "name": "d"})) == ["a", "d", "b", "c"]
    for wrong in (-2, 4, "4"):
        with pytest.raises(errors.OpPrereqError, match="the instance has 3"):
            apply(("add", wrong, {"size": 1}))
