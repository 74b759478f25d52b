"""Where logical volumes are put: whatever is requested and whatever is free."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganeti.storage.lvm.allocation import NoRoomError, Room, exclusive, place, stripe

sizes = st.integers(min_value=1, max_value=40)
batches = st.lists(st.lists(sizes, min_size=1, max_size=3), min_size=1, max_size=6)
frees = st.lists(
    st.tuples(st.integers(min_value=0, max_value=120), st.booleans()), min_size=1, max_size=8
)


def rooms_of(found: list[tuple[int, bool]]) -> list[Room]:
    return [Room(f"/dev/sd{number}", free, near) for number, (free, near) in enumerate(found)]


def total(batch: list[list[int]]) -> int:
    return sum(map(sum, batch))


@given(frees, batches)
def test_a_batch_is_placed_exactly_when_all_disks_together_have_the_room(
    found: list[tuple[int, bool]], batch: list[list[int]]
) -> None:
    rooms = rooms_of(found)
    if sum(room.free for room in rooms) < total(batch):
        with pytest.raises(NoRoomError) as caught:
            place(rooms, batch)
        assert caught.value.needed == total(batch)
        return
    taken: Counter[str] = Counter()
    places = place(rooms, batch)
    assert [len(each) for each in places] == [len(each) for each in batch]
    for sizes_there, shares in zip(batch, places):
        for size, share in zip(sizes_there, shares):
            assert sum(share.values()) == size
            assert all(part > 0 for part in share.values())
            taken.update(share)
    assert all(taken[room.name] <= room.free for room in rooms)


@given(frees, batches)
def test_as_few_new_disks_as_possible_are_used(
    found: list[tuple[int, bool]], batch: list[list[int]]
) -> None:
    rooms = rooms_of(found)
    if sum(room.free for room in rooms) < total(batch):
        return
    used = {name for shares in place(rooms, batch) for share in shares for name in share}
    missing = total(batch) - sum(room.free for room in rooms if room.near)
    fewest = 0
    for free in sorted((room.free for room in rooms if not room.near), reverse=True):
        if missing <= 0:
            break
        missing -= free
        fewest += 1
    assert len(used & {room.name for room in rooms if not room.near}) <= fewest


@given(frees, batches)
def test_what_fits_on_one_disk_is_put_on_one(
    found: list[tuple[int, bool]], batch: list[list[int]]
) -> None:
    rooms = [Room(room.name, room.free) for room in rooms_of(found)]
    if max(room.free for room in rooms) < total(batch):
        return
    used = {name for shares in place(rooms, batch) for share in shares for name in share}
    assert len(used) == 1


@given(frees, batches)
def test_a_volume_spills_over_only_when_no_disk_of_the_batch_could_take_it(
    found: list[tuple[int, bool]], batch: list[list[int]]
) -> None:
    rooms = rooms_of(found)
    if sum(room.free for room in rooms) < total(batch):
        return
    shares = [share for each in place(rooms, batch) for share in each]
    whole: Counter[str] = Counter()
    for share in shares:
        if len(share) == 1:
            whole.update(share)
    used = {name for share in shares for name in share}
    for share in shares:
        if len(share) > 1:
            left = [room.free - whole[room.name] for room in rooms if room.name in used]
            assert all(free < sum(share.values()) for free in left)


def test_data_and_metadata_stay_together() -> None:
    rooms = [Room("/dev/sda", 100), Room("/dev/sdb", 90)]
    [[data0, meta0], [data1, meta1]] = place(rooms, [[80, 5], [85, 5]])
    assert set(data0) == set(meta0)
    assert set(data1) == set(meta1)
    assert set(data0) != set(data1)


@given(frees, sizes, st.integers(min_value=2, max_value=5))
def test_stripes_have_room_on_different_disks(
    found: list[tuple[int, bool]], size: int, stripes: int
) -> None:
    rooms = {room.name: room for room in rooms_of(found)}
    names = stripe(list(rooms.values()), size, stripes)
    assert len(names) == len(set(names)) <= stripes
    assert all(rooms[name].free * len(names) >= size for name in names)


@given(frees, sizes, st.integers(min_value=1, max_value=4))
def test_whole_disks_are_enough_or_refused(
    found: list[tuple[int, bool]], size: int, spindles: int
) -> None:
    rooms = {room.name: room for room in rooms_of(found)}
    best = sorted((room.free for room in rooms.values()), reverse=True)[:spindles]
    if len(rooms) < spindles or sum(best) < size:
        with pytest.raises(NoRoomError):
            exclusive(list(rooms.values()), size, spindles)
        return
    names = exclusive(list(rooms.values()), size, spindles)
    assert len(set(names)) == spindles
    assert sum(rooms[name].free for name in names) >= size
