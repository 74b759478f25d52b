"""What a backup reads, by what is allocated and what was written."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from ganeti.backup.plan import Range, choose_mode, find_ranges
from ganeti.backup.sums import CHUNK
from ganeti.model.backup import Mode
from ganeti.net.nbd import Extent


def extents(flags: list[tuple[int, bool]]) -> list[Extent]:
    found, offset = [], 0
    for length, flag in flags:
        found.append(Extent(offset, length, flag))
        offset += length
    return found


def test_holes_are_not_read_and_neighbours_are_one_range() -> None:
    holes = extents([(3 * CHUNK, False), (2 * CHUNK, True), (CHUNK, False)])
    assert list(find_ranges(holes, None, 6 * CHUNK, 0)) == [
        Range(0, 3 * CHUNK, False),
        Range(3 * CHUNK, 2 * CHUNK, True),
        Range(5 * CHUNK, CHUNK, False),
    ]


def test_only_what_is_dirty_is_looked_at() -> None:
    holes = extents([(8 * CHUNK, False)])
    dirty = extents([(2 * CHUNK, False), (CHUNK, True), (5 * CHUNK, False)])
    assert list(find_ranges(holes, dirty, 8 * CHUNK, 8 * CHUNK)) == [Range(2 * CHUNK, CHUNK, False)]


def test_what_the_disk_has_grown_by_is_looked_at_though_it_is_clean() -> None:
    size = 4 * CHUNK + 512
    holes, dirty = extents([(size, False)]), extents([(size, False)])
    assert list(find_ranges(holes, dirty, size, 2 * CHUNK + 1)) == [
        Range(2 * CHUNK, 2 * CHUNK + 512, False)
    ]


def test_an_empty_disk_has_nothing() -> None:
    assert list(find_ranges([], None, 0, 0)) == []


def test_without_a_bitmap_all_is_compared() -> None:
    assert choose_mode(has_parent=False, has_bitmaps=True) is Mode.FULL
    assert choose_mode(has_parent=True, has_bitmaps=True) is Mode.DIRTY
    assert choose_mode(has_parent=True, has_bitmaps=False) is Mode.COMPARE


@given(
    st.lists(st.tuples(st.integers(1, 3 * CHUNK), st.booleans()), max_size=8),
    st.lists(st.tuples(st.integers(1, 3 * CHUNK), st.booleans()), max_size=8),
    st.integers(1, 12 * CHUNK),
)
def test_every_dirty_byte_of_data_is_in_a_range(
    holes: list[tuple[int, bool]], dirty: list[tuple[int, bool]], size: int
) -> None:
    covering = extents([*holes, (size, False)])
    written = extents([*dirty, (size, False)])
    ranges = list(find_ranges(covering, written, size, size))
    assert all(a.offset + a.length <= b.offset for a, b in itertools.pairwise(ranges))
    assert all(each.offset % CHUNK == 0 and each.offset + each.length <= size for each in ranges)
    for extent in written:
        if not extent.flag or extent.offset >= size:
            continue
        ends = min(extent.offset + extent.length, size)
        for byte in (extent.offset, ends - 1):
            [found] = [r for r in ranges if r.offset <= byte < r.offset + r.length]
            in_hole = any(h.flag and h.offset <= byte < h.offset + h.length for h in covering)
            assert in_hole or not found.zero
