"""On which physical volumes the logical volumes of an instance are put. Pure.

Volumes of one instance are kept on as few disks as possible, so that the loss of one disk hurts
few instances and the data and metadata of a mirror are lost together or not at all. Different
instances are spread: each starts on the disk with the most room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: Physical volume -> extents taken from it.
Share = Mapping[str, int]


@dataclass(frozen=True)
class Room:
    """A physical volume that may be used; ``free`` in extents."""

    name: str
    free: int
    #: the instance has a volume there already
    near: bool = False


class NoRoomError(Exception):
    """The group is too full; both in extents."""

    def __init__(self, needed: int, free: int) -> None:
        super().__init__(f"needs {needed} extents, {free} free")
        self.needed = needed
        self.free = free


def place(rooms: Sequence[Room], batch: Sequence[Sequence[int]]) -> list[list[Share]]:
    """The place of every volume of a batch, in the order of the batch.

    ``batch`` are sets of volumes (sizes in extents) that belong closest together, such as data
    and metadata. A set is put on one disk if one has the room, else each of its volumes, else a
    volume spills over to several. The disks are those that the instance is on, and as few others
    as can hold the batch.

    Raises:
        NoRoomError: all disks together are too small.
    """
    left = {room.name: room.free for room in _choose(rooms, sum(map(sum, batch)))}
    places: dict[tuple[int, int], Share] = {}
    for number in sorted(range(len(batch)), key=lambda each: -sum(batch[each])):
        name = _find_tightest(left, sum(batch[number]))
        if name is not None:
            for position, size in enumerate(batch[number]):
                places[number, position] = _take(left, name, size)
    rest = [
        (number, position)
        for number, sizes in enumerate(batch)
        for position in range(len(sizes))
        if (number, position) not in places
    ]
    spilling: list[tuple[int, int]] = []
    for number, position in sorted(rest, key=lambda each: -batch[each[0]][each[1]]):
        name = _find_tightest(left, batch[number][position])
        if name is None:
            spilling.append((number, position))
        else:
            places[number, position] = _take(left, name, batch[number][position])
    for number, position in spilling:
        places[number, position] = _spill(left, batch[number][position])
    return [
        [places[number, position] for position in range(len(sizes))]
        for number, sizes in enumerate(batch)
    ]


def stripe(rooms: Sequence[Room], size: int, stripes: int) -> list[str]:
    """Disks for a volume of ``size`` extents in equal parts; fewer than ``stripes`` if need be.

    One or no name is the answer when it cannot be striped at all: :func:`place` it then.
    """
    ordered = sorted(rooms, key=lambda room: (not room.near, -room.free))
    for count in range(min(stripes, len(ordered)), 1, -1):
        part = -(-size // count)
        fitting = [room.name for room in ordered if room.free >= part]
        if len(fitting) >= count:
            return fitting[:count]
    return []


def exclusive(rooms: Sequence[Room], size: int, spindles: int) -> list[str]:
    """``spindles`` whole disks for a volume; ``rooms`` are the empty ones.

    Raises:
        NoRoomError: fewer are empty, or that many are too small.
    """
    chosen = sorted(rooms, key=lambda room: (room.free, room.name))
    while len(chosen) > spindles and sum(room.free for room in chosen[:spindles]) < size:
        del chosen[0]
    chosen = chosen[:spindles]
    free = sum(room.free for room in chosen)
    if len(chosen) < spindles or free < size:
        raise NoRoomError(size, free)
    return [room.name for room in chosen]


def _choose(rooms: Sequence[Room], total: int) -> list[Room]:
    """Disks with room for ``total``: first those of the instance, then as few as possible."""
    usable = [room for room in rooms if room.free > 0]
    near = sorted((room for room in usable if room.near), key=lambda room: -room.free)
    others = sorted((room for room in usable if not room.near), key=lambda room: -room.free)
    here = sum(room.free for room in near)
    if here + sum(room.free for room in others) < total:
        raise NoRoomError(total, here + sum(room.free for room in others))
    if here >= total:
        return _take_enough(near, total)
    fresh: list[Room] = []
    while here + sum(room.free for room in fresh) < total:
        fresh.append(others[len(fresh)])
    missing = total - sum(room.free for room in fresh)
    return [*fresh, *_take_enough(near, missing)]


def _take_enough(rooms: Sequence[Room], total: int) -> list[Room]:
    """The first of these that together have ``total``."""
    found: list[Room] = []
    for room in rooms:
        if total <= 0:
            break
        found.append(room)
        total -= room.free
    return found


def _find_tightest(left: Mapping[str, int], size: int) -> str | None:
    """The disk on which the least is left over."""
    fitting = [name for name, free in left.items() if free >= size]
    return min(fitting, key=lambda name: left[name], default=None)


def _take(left: dict[str, int], name: str, size: int) -> Share:
    left[name] -= size
    return {name: size}


def _spill(left: dict[str, int], size: int) -> Share:
    share: dict[str, int] = {}
    for name in sorted(left, key=lambda each: -left[each]):
        part = min(size, left[name])
        if part:
            share[name] = part
            left[name] -= part
            size -= part
    return share
