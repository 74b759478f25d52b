"""Texts of option values: lists, keys, identifiers, sizes, ranges."""

from __future__ import annotations

from typing import Any

import pytest

from ganeti import errors
from ganeti.cli import values


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", []),
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        ("a,,b", ["a", "", "b"]),
        (r"a\,b,c", ["a,b", "c"]),
        (r"a\\,b", ["a\\", "b"]),
        ("a\\", ["a\\"]),
    ],
)
def test_lists_and_their_escapes(text: str, items: list[str]) -> None:
    assert values.split_list(text) == items


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", {}),
        ("memory=1G,vcpus=2", {"memory": "1G", "vcpus": "2"}),
        ("acpi,no_pae,-kernel_path", {"acpi": True, "pae": False, "kernel_path": None}),
        ("args=a=b", {"args": "a=b"}),
        ("vcpus=", {"vcpus": ""}),
        (r"args=a\,b,x=1", {"args": "a,b", "x": "1"}),
        ("no_x=1", {"no_x": "1"}),
    ],
)
def test_keys_and_values(text: str, keys: dict[str, Any]) -> None:
    assert values.keyval(text) == keys


@pytest.mark.parametrize("text", ["a=1,a=2", "a,no_a", "=1", "a=1,", "no_", "-"])
def test_keys_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(errors.ParameterError):
        values.keyval(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0:size=10G,mode=ro", ("0", {"size": "10G", "mode": "ro"})),
        ("0", ("0", {})),
        ("no_kvm", ("kvm", False)),
        ("-kvm", ("kvm", None)),
        ("-1:add,size=1G", ("-1", {"add": True, "size": "1G"})),
        ("kvm:x=a:b", ("kvm", {"x": "a:b"})),
    ],
)
def test_identifiers_with_keys(text: str, found: Any) -> None:
    assert values.identkeyval(text) == found


def test_what_is_removed_has_no_keys() -> None:
    with pytest.raises(errors.ParameterError, match="No keys can be given with 'no_0:size=1'"):
        values.identkeyval("no_0:size=1")


def test_groups_of_identifiers() -> None:
    assert values.multilistidentkeyval("min:a=1/max:a=2//min:a=3") == [
        {"min": {"a": "1"}, "max": {"a": "2"}},
        {"min": {"a": "3"}},
    ]
    assert values.multilistidentkeyval("") == []
    for text in ("min:a", "min:a=1/min:a=2"):
        with pytest.raises(errors.ParameterError):
            values.multilistidentkeyval(text)


@pytest.mark.parametrize(
    ("text", "mib"), [("512", 512), ("1G", 1024), ("1.5g", 1536), ("3", 4), ("2TiB", 2 << 20)]
)
def test_sizes_are_mebibytes_in_steps_of_four(text: str, mib: int) -> None:
    assert values.unit(text) == mib


@pytest.mark.parametrize("text", ["", "G", "-1G", "1Q", "1 2", "1e3", "nan"])
def test_other_texts_are_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match=r"size|unit"):
        values.unit(text)


def test_truth_numbers_and_defaults() -> None:
    assert [values.boolean(text) for text in ("yes", "True", "no", "FALSE")] == [
        True,
        True,
        False,
        False,
    ]
    with pytest.raises(ValueError, match="neither yes nor no"):
        values.boolean("maybe")
    assert values.parse_float_or_default("Default") == "default"
    assert values.parse_float_or_default("1.5") == 1.5
    with pytest.raises(ValueError, match="neither a number nor 'default'"):
        values.parse_float_or_default("x")


def test_disk_numbers_and_user_ids() -> None:
    assert values.indices("0,2") == [0, 2]
    assert values.indices("") == []
    assert values.uid_ranges("10-20,30") == [[10, 20], [30, 30]]
    with pytest.raises(errors.OpPrereqError, match="'x' is not a list of disk indexes"):
        values.indices("x")
    for text in ("20-10", "x", "-5"):
        with pytest.raises(errors.OpPrereqError, match="not a range of user IDs"):
            values.uid_ranges(text)


def test_indexed_options_become_a_list_with_gaps() -> None:
    assert values.index_list([("2", {"a": "1"}), ("0", {})], "disk") == [{}, {}, {"a": "1"}]
    with pytest.raises(errors.OpPrereqError, match="disk 0 is given twice"):
        values.index_list([("0", {}), ("0", {})], "disk")


def test_taking_back_a_parameter() -> None:
    given = values.keyval("a=1,-b,no_c")
    assert values.drop_resets(given) == {"a": "1", "c": False}
    assert values.resets_as_default(given) == {"a": "1", "b": "default", "c": False}
