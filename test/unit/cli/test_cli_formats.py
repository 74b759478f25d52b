"""Lists for programs: what a script finds in JSON, YAML and CSV; colours for people only."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganeti import errors
from ganeti.cli import formats, output
from ganeti.cli.command import Call, Command
from ganeti.luxi.client import FieldDef, QueryResult

RESULT = QueryResult(
    [
        FieldDef(name, name.title(), kind)
        for name, kind in (
            ("name", "text"),
            ("oper_ram", "unit"),
            ("xyz", "unknown"),
            ("nic.ips", "other"),
            ("admin_up", "bool"),
            ("status", "text"),
        )
    ],
    [
        [(0, "web1"), (0, 96), (1, None), (0, ["192.0.2.1", None]), (0, True), (0, 'a,"b"\nc')],
        [(0, "wéb2"), (4, None), (1, None), (0, []), (0, False), (2, None)],
        [(0, "web3"), (3, None), (9, None), (0, None), (0, None), (0, "")],
    ],
)
NAMES = [item.name for item in RESULT.fields]


def text(form: str, **more: Any) -> str:
    return "\n".join(formats.lines(form, NAMES, formats.make_records(RESULT), **more)) + "\n"


def test_json() -> None:
    assert json.loads(text("json")) == [
        {
            "name": "web1",
            "oper_ram": 96,
            "xyz": None,
            "nic.ips": ["192.0.2.1", None],
            "admin_up": True,
            "status": 'a,"b"\nc',
            "Missing": {"xyz": "unknown"},
        },
        {
            "name": "wéb2",
            "oper_ram": None,
            "xyz": None,
            "nic.ips": [],
            "admin_up": False,
            "status": None,
            "Missing": {"oper_ram": "offline", "xyz": "unknown", "status": "nodata"},
        },
        {
            "name": "web3",
            "oper_ram": None,
            "xyz": None,
            "nic.ips": None,
            "admin_up": None,
            "status": "",
            "Missing": {"oper_ram": "unavail", "xyz": "unknown"},
        },
    ]
    assert len(text("json").splitlines()) == 3 + 2  # one object on each line
    assert list(json.loads(text("json"))[0]) == [*NAMES, "Missing"]


def test_json_without_missing_values_has_no_reasons() -> None:
    whole = QueryResult(RESULT.fields[:1], [[(0, "web1")]])
    assert formats.make_records(whole) == [{"name": "web1"}]


def test_empty_lists() -> None:
    assert formats.lines("json", NAMES, []) == ["[]"]
    assert formats.lines("yaml", NAMES, []) == ["[]"]
    assert formats.lines("csv", ["name", "os"], []) == ["name,os"]
    assert formats.lines("csv", ["name", "os"], [], headers=False) == []


def test_csv() -> None:
    assert list(csv.reader(io.StringIO(text("csv")))) == [
        NAMES,
        ["web1", "96", "", '["192.0.2.1",null]', "true", 'a,"b"\nc'],
        ["wéb2", "", "", "[]", "false", ""],
        ["web3", "", "", "", "", ""],
    ]
    assert text("csv", headers=False).startswith("web1,96,")
    twice = formats.lines("csv", ["name", "name"], [{"name": "web1"}])
    assert twice == ["name", "web1"]


def read_yaml(lines: list[str]) -> list[dict[str, Any]]:
    """The small part of YAML that is written: a list of mappings to JSON values."""
    found: list[dict[str, Any]] = []
    for line in lines:
        matched = re.fullmatch(r'(- |  )(?:("(?:[^"\\]|\\.)*")|([A-Za-z][\w./]*)): (.*)', line)
        assert matched, line
        start, quoted, plain, value = matched.groups()
        if start == "- ":
            found.append({})
        value = re.sub(r"\\\\|\\U([0-9a-f]{8})", wide, value)
        found[-1][json.loads(quoted) if quoted else plain] = json.loads(value)
    return found


def wide(found: re.Match[str]) -> str:
    return found[0] if found[1] is None else chr(int(found[1], 16))


def test_yaml() -> None:
    lines = formats.lines("yaml", NAMES, formats.make_records(RESULT))
    assert lines[:3] == ['- name: "web1"', "  oper_ram: 96", "  xyz: null"]
    assert read_yaml(lines) == formats.make_records(RESULT)
    assert all(line.isascii() for line in lines)


@given(
    st.lists(
        st.dictionaries(st.text(min_size=1, alphabet="az/._: #-\"'\\é😀"), st.text(), min_size=1),
        min_size=1,
    )
)
def test_yaml_of_any_text(records: list[dict[str, Any]]) -> None:
    lines = formats.lines("yaml", [], records)
    assert not re.search(r"(?<!\\)(\\\\)*\\ud[89ab]", "".join(lines)), "no surrogate pairs"
    assert read_yaml([re.sub(r"\\U([0-9a-f]{8})", wide, line) for line in lines]) == records


_LIST = Command("list", None, (), (), "show")


def test_options_that_make_no_sense_together() -> None:
    def choose(**opts: Any) -> str | None:
        return formats.choose(Call("gnt-node", "list", SimpleNamespace(**opts), [], _LIST))

    assert choose(format="table", separator="|", units="m") is None
    assert choose(format="csv", separator=None, units=None) == "csv"
    assert choose(format="json", separator=None) == "json"
    for name in ("separator", "units"):
        with pytest.raises(errors.OpPrereqError, match=f"--{name} is for tables"):
            choose(format="json", **{"separator": None, "units": None, name: "m"})


# colours --------------------------------------------------------------------------------------


def test_colours_do_not_move_columns() -> None:
    plain = output.query_table(RESULT, verbose=True)
    coloured = output.query_table(RESULT, verbose=True, colour=True)
    assert coloured != plain
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in coloured] == plain
    assert "\x1b[33m(offline)\x1b[0m" in coloured[2]


def test_with_a_separator_nothing_is_coloured() -> None:
    assert "\x1b" not in "".join(output.query_table(RESULT, separator="|", colour=True))


@pytest.fixture
def stdout_is(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    def change(terminal: bool) -> None:
        monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: terminal))

    return change


@pytest.mark.parametrize(
    ("terminal", "term", "no_colour", "wanted"),
    [
        (True, "xterm", "", True),
        (False, "xterm", "", False),
        (True, "dumb", "", False),
        (True, None, "", False),
        (True, "xterm", "1", False),
    ],
)
def test_when_colours_are_wanted(
    stdout_is: Callable[[bool], None],
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,
    term: str | None,
    no_colour: str,
    wanted: bool,
) -> None:
    monkeypatch.setenv("NO_COLOR", no_colour)
    if term is None:
        monkeypatch.delenv("TERM", raising=False)
    else:
        monkeypatch.setenv("TERM", term)
    stdout_is(terminal)
    assert output.wants_colour() is wanted
