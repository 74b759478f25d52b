"""Tables, units, missing values, and the indented text of the info commands."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ganeti.cli import formats, info, output
from ganeti.luxi.client import FieldDef, QueryResult


def result(*columns: tuple[str, str, Any]) -> QueryResult:
    """One row; columns are name, kind and ``(status, value)``."""
    fields = [FieldDef(name, name.title(), kind) for name, kind, _ in columns]
    return QueryResult(fields, [[cell for _, _, cell in columns]])


def test_columns_are_aligned_and_the_last_text_is_not_padded() -> None:
    fields = [
        FieldDef("name", "Node", "text"),
        FieldDef("free", "Free", "unit"),
        FieldDef("tags", "Tags", "other"),
    ]
    rows = [
        [(0, "node1"), (0, 512), (0, "a")],
        [(0, "n2"), (0, 20480), (0, "long tag")],
    ]
    assert output.query_table(QueryResult(fields, rows)) == [
        "Node   Free Tags",
        "node1  512M a",
        "n2    20.0G long tag",
    ]


def test_a_separator_takes_away_alignment_and_unit() -> None:
    table = result(("name", "text", (0, "n1")), ("free", "unit", (0, 20480)))
    assert output.query_table(table, separator=":") == ["Name:Free", "n1:20480"]
    assert output.query_table(table, separator=":", headers=False) == ["n1:20480"]
    assert output.query_table(table, separator="") == ["NameFree", "n120480"]
    assert output.query_table(table, separator=":", unit="h", headers=False) == ["n1:20.0G"]


@pytest.mark.parametrize(
    ("unit", "text"), [("h", "1.5T"), ("m", "1572864"), ("g", "1536.0"), ("t", "1.5")]
)
def test_units_of_sizes(unit: str, text: str) -> None:
    table = result(("free", "unit", (0, 1572864)))
    assert output.query_table(table, unit=unit, headers=False) == [text]


@pytest.mark.parametrize(
    ("status", "short", "long"),
    [(1, "??", "(unknown)"), (2, "?", "(nodata)"), (3, "-", "(unavail)"), (4, "*", "(offline)")],
)
def test_why_a_value_is_missing(status: int, short: str, long: str) -> None:
    table = result(("free", "unit", (status, None)))
    assert output.query_table(table, headers=False) == [short]
    assert output.query_table(table, headers=False, verbose=True) == [long]


def test_values_by_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    table = result(
        ("a", "bool", (0, True)),
        ("b", "bool", (0, False)),
        ("c", "timestamp", (0, None)),
        ("d", "other", (0, ["x", 1])),
        ("e", "other", (0, ["x", 1])),
        ("f", "other", (0, None)),
    )
    formats = {"e": output.join_items}
    assert output.query_table(table, separator="|", headers=False, formats=formats) == [
        "Y|N|N/A|['x', 1]|x,1|None"
    ]


def test_a_table_without_rows_is_its_titles() -> None:
    empty = QueryResult([FieldDef("name", "Node", "text")], [])
    assert output.query_table(empty) == ["Node"]
    assert output.query_table(empty, headers=False) == []


def test_fields_are_described_in_words() -> None:
    fields = [FieldDef("free", "Free", "unit", "Space"), FieldDef("x", "x", "unknown", "")]
    lines = output.fields_table(fields, separator="|")
    assert lines == [
        "Name|Type|Title|Description",
        "free|Storage size|Free|Space",
        "x|Unknown|x|",
    ]


def test_info_is_indented_like_yaml() -> None:
    data = [
        [
            ("Name", "web1"),
            ("Parameters", {"b": 1, "a": "default (2)"}),
            ("Empty", {}),
            ("Disks", [[("disk/0", "plain"), ("name", None)]]),
            ("Tags", ["x", "y"]),
        ]
    ]
    assert info.dump(data) == (
        "- Name: web1\n"
        "  Parameters: \n"
        "    a: default (2)\n"
        "    b: 1\n"
        "  Empty: \n"
        "  Disks: \n"
        "    - disk/0: plain\n"
        "      name: None\n"
        "  Tags: \n"
        "    - x\n"
        "    - y\n"
    )


def test_info_tells_inherited_values_from_own_ones() -> None:
    assert info.mark_defaults({"a": 1, "b": 2, "c": {"d": 3}}, {"b": 2}) == {
        "a": "default (1)",
        "b": "2",
        "c": {"d": "default (3)"},
    }


@pytest.mark.parametrize(
    "value",
    [
        "a: b",
        "done:",
        "* creating disks",
        "- x",
        "#1",
        "a #b",
        "'",
        '"x',
        "[x",
        "{",
        "@a",
        "%d",
        "!",
        "&a",
        "| x",
        "> x",
        "`",
        "? x",
        "~",
        "=",
        "tab\there",
        "bell\x07",
        "one\ntwo: 2",
        "",
        "2026-11-22 10:00:00.5 * waiting: disk 0",
        "emoji \U0001f600",
    ],
)
def test_info_is_yaml_whatever_a_value_says(value: str) -> None:
    read = yaml.safe_load(info.dump([[("key", value), ("list", [value]), ("next", "x")]]))
    assert read == [{"key": value or None, "list": [value or None], "next": "x"}]


def test_info_quotes_only_what_must_be() -> None:
    assert info.dump([("a", "default (None)"), ("b", "x:y, 50% (c) - d")]) == (
        "a: default (None)\nb: x:y, 50% (c) - d\n"
    )


def test_a_list_in_one_line_has_its_type_in_the_exact_form() -> None:
    data = [("id", info.Flow(["loop", "/srv/a"])), ("none", None), ("empty", []), ("no", {})]
    assert info.dump(data) == "id: ['loop', '/srv/a']\nnone: None\nempty: \nno: \n"
    exact = info.dump(data, formats.yaml_scalar)
    assert yaml.safe_load(exact) == {
        "id": ["loop", "/srv/a"],
        "none": None,
        "empty": [],
        "no": {},
    }


def test_several_bounds_of_a_policy_are_numbered() -> None:
    pair = {"max": {"cpu-count": 8}, "min": {"cpu-count": 1}}
    shown = info.dump(info.ipolicy({"minmax": [pair, pair], "std": {}}))
    assert [line.strip(" -:") for line in shown.splitlines() if "/" in line] == [
        "max/0",
        "min/0",
        "max/1",
        "min/1",
    ]


def test_many_lines_stay_part_of_their_value() -> None:
    assert info.dump([[("key", "one\ntwo")]]) == "- key: one\n    two\n"
