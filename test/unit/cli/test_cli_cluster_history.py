"""gnt-cluster history and diff: how times are written, and how changes look."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ganeti import errors
from ganeti.cli import moments, parser
from ganeti.cli.cluster.history import _history_lines, _origin, _Text

NOW = 1_700_000_000.0


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("now", NOW),
        ("-2h", NOW - 7200),
        ("-30", NOW - 30),
        ("-1w", NOW - 604800),
        ("2026-11-21", 1795219200),
        ("2026-11-21 08:00", 1795248000),
        ("2026-11-21T08:00:00", 1795248000),
        (" 2026-11-21 08:00:30 ", 1795248030),
        ("2026-11-21T08:00:00+01:00", 1795244400),
        ("2026-11-21T08:00Z", 1795248000),
        ("2h", NOW - 7200),
        ("5m", NOW - 300),
        ("1795248000", 1795248000),
        ("1795248000.5", 1795248000.5),
        ("0", 0),
    ],
)
def test_times(text, seconds):
    assert moments.parse(text, NOW) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "-",
        "-2y",
        "--2h",
        "2y",
        "2026-13-01",
        "2026-02-30 08:00",
        "08:00",
        "1e99",
        "0001-01-01 00:00",
        "99999-01-01",
        "nan",
        "inf",
        "٣",
        "9" * 50,
        "-" + "9" * 40,
        "\0",
    ],
)
def test_what_is_no_time(text):
    with pytest.raises(errors.OpPrereqError, match="is not a time; use one of") as caught:
        moments.parse(text, NOW)
    assert caught.value.args[1] == "wrong_input"


def test_an_argument_may_look_like_minus_two_hours():
    assert parser.parse([], ["-2h", "now"])[1] == ["-2h", "now"]
    with pytest.raises(parser.UsageError):
        parser.parse([], ["-x2", "now"])


def change(**more: Any) -> dict[str, Any]:
    return {
        "serial": 7,
        "time": NOW,
        "name": "instance-modify",
        "job": 12,
        "user": "alice",
        "reason": "more memory",
        "objects": [],
        "others": 0,
        **more,
    }


def item(*keys: tuple[str, Any, Any], **more: Any) -> dict[str, Any]:
    return {
        "kind": "instance",
        "uuid": "u",
        "name": "web1",
        "change": "changed",
        "keys": [{"key": k, "old": a, "new": b} for k, a, b in keys],
        **more,
    }


def test_a_change_as_text():
    node = "0f7f1a52-6c52-4a39-9d7a-5a1c0a6fbb01"
    lines = list(
        _Text({node: "node2"}, verbose=False).change(
            change(
                others=2,
                objects=[
                    item(
                        ("beparams/maxmem", None, 512),
                        ("primary_node", "n", node),
                        ("tags", ["a", "b"], ["b", "c"]),
                        (f"networks/{node}/mode", "x", [node]),
                    ),
                    item(kind="disk", name="disk/0", owner="web1", change="added"),
                ],
            )
        )
    )
    assert lines == [
        "Change 7: instance-modify",
        "  Time: 2023-11-14 22:13:20",
        "  Job: 12",
        "  User: alice",
        "  Reason: more memory",
        "  Instance web1: changed",
        "    beparams/maxmem: (unset) -> 512",
        "    primary_node: n -> node2",
        "    tags: -a +c",
        '    networks/node2/mode: x -> ["node2"]',
        "  Disk disk/0 of web1: added",
        "  and 2 other objects",
    ]


def test_text_does_nothing_to_a_terminal():
    text = _Text({}, verbose=False)
    lines = list(
        text.change(
            change(
                reason="a\x1b[31m\nb",
                objects=[item(("k\x07", "\x9bq", "x\ny"), name="\x1b]0;t\x07")],
            )
        )
    )
    assert all(line.isprintable() for line in lines)


def test_long_values_are_cut_unless_wanted():
    objects = [item(("reservations", "0" * 300, "1" * 300))]
    (line,) = [x for x in _Text({}, verbose=False).change(change(objects=objects)) if "000" in x]
    assert "... (300 characters)" in line
    (line,) = [x for x in _Text({}, verbose=True).change(change(objects=objects)) if "000" in x]
    assert "0" * 300 in line


def test_gaps_are_told_where_they_are():
    found = {"changes": [change(serial=3), change(serial=9)], "missing": [[1, 2], [4, 8]]}
    lines = [x for x in _history_lines(found, _Text({}, verbose=False)) if x[:1] in "(C" and x]
    assert [x[:12] for x in lines] == [
        "(changes 1 t",
        "Change 3: in",
        "(changes 4 t",
        "Change 9: in",
    ]


def test_origins():
    assert _origin({"serials": [7], "jobs": []}) == " (change 7)"
    assert _origin({"serials": [7, 9], "jobs": [12]}) == " (changes 7 9, job 12)"
    assert _origin({"serials": [*range(1, 9)], "jobs": [1, 2]}) == (
        " (changes 1 2 ... 7 8, jobs 1 2)"
    )
