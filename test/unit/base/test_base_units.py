"""Sizes and times as people write them."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganeti import errors
from ganeti.base import units

FACTORS = {"": 1, "m": 1, "M": 1, "MiB": 1, "g": 1024, "GB": 1024, "t": 1024**2, "TiB": 1024**2}


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("512", 512),
        (512, 512),
        ("512M", 512),
        ("512mib", 512),
        ("1.5g", 1536),
        (" 2 TiB ", 2 * 1024 * 1024),
        (".5G", 512),
        ("1.G", 1024),
        ("1", 4),
        ("4097", 4100),
        ("0", 0),
        ("0.001", 4),
    ],
)
def test_sizes_are_mib_rounded_up_to_extents(text: str, mib: int) -> None:
    assert units.parse_size(text) == mib


@given(st.decimals(0, 10**5, places=3), st.sampled_from(sorted(FACTORS)))
def test_a_size_is_never_smaller_than_asked_nor_an_extent_larger(number, unit) -> None:
    wanted = Fraction(number) * FACTORS[unit]
    got = units.parse_size(f"{number:f}{unit}")
    assert got % 4 == 0
    assert wanted <= got < wanted + 4 + Fraction(1, 10**6)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "M",
        "g10",
        "-1",
        "+1",
        "1e3",
        "1,5G",
        "1.5.2",
        "1 000",
        "0x10",
        "ten",
        "1_0",
        "nan",
        "inf",
        "1G 2G",
        "1\0",
        "१२",
        ".",
        "10%",
        "None",
        "True",
    ],
)
def test_what_is_no_size_is_refused_in_words(text: str) -> None:
    with pytest.raises(errors.UnitParseError, match="is not a size: expected a number"):
        units.parse_size(text)


@pytest.mark.parametrize("text", ["1k", "10P", "5bytes", "1mm", "3 gigabyte"])
def test_unknown_units_are_named(text: str) -> None:
    unit = text.strip("0123456789 ")
    with pytest.raises(errors.UnitParseError, match=f"unknown unit '{unit}': use M, G or T"):
        units.parse_size(text)


@pytest.mark.parametrize("text", ["9" * 30, "9" * 5000, "2000000T"])
def test_sizes_beyond_all_disks_are_refused(text: str) -> None:
    with pytest.raises(errors.UnitParseError, match="larger than any disk") as caught:
        units.parse_size(text)
    assert len(str(caught.value)) < 100


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_refused(text: str) -> None:
    try:
        assert units.parse_size(text) >= 0
    except errors.UnitParseError as err:
        assert str(err)  # noqa: PT017 - both outcomes are fine


@pytest.mark.parametrize(
    ("mib", "unit", "text"),
    [
        (0, "h", "0M"),
        (1023, "h", "1023M"),
        (1024, "h", "1.0G"),
        (1536, "h", "1.5G"),
        (1024 * 1024, "h", "1.0T"),
        (1536, "m", "1536"),
        (1536, "g", "1.5"),
        (1024 * 1024 * 3 // 2, "t", "1.5"),
    ],
)
def test_sizes_are_shown_as_asked(mib: int, unit: str, text: str) -> None:
    assert units.format_size(mib, unit) == text


def test_an_unknown_unit_to_show_is_a_bug() -> None:
    with pytest.raises(errors.ProgrammerError, match="'x'"):
        units.format_size(1, "x")


@given(st.integers(0, 2**40))
def test_a_shown_size_reads_back_to_about_the_same(mib: int) -> None:
    again = units.parse_size(units.format_size(mib))
    assert math.isclose(again, mib, rel_tol=0.06, abs_tol=4)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("30m", 1800),
        ("4h", 14400),
        ("2d", 172800),
        ("1w", 604800),
        (" 5 m ", 300),
        ("0", 0),
        ("007", 7),
    ],
)
def test_times_are_seconds(text: str, seconds: int) -> None:
    assert units.parse_timespec(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "m",
        "-1",
        "+1s",
        "1.5h",
        "1y",
        "1H",
        "1M",
        "ten",
        "1h30m",
        "1 2",
        "٣",
        "²s",
        "9" * 5000,
        "1e3",
        "now",
    ],
)
def test_what_is_no_time_is_refused_in_words(text: str) -> None:
    with pytest.raises(errors.UnitParseError, match="is not a time: expected a number") as caught:
        units.parse_timespec(text)
    assert len(str(caught.value)) < 150


@given(st.text(max_size=12))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    try:
        assert units.parse_timespec(text) >= 0
    except errors.UnitParseError as err:
        assert str(err)  # noqa: PT017 - both outcomes are fine
