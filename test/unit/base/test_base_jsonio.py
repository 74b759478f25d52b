"""JSON text: what goes in comes out, and what is wrong is told with its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganeti import errors
from ganeti.base import jsonio
from ganeti.model.enums import DiskTemplate

texts = st.text(st.characters(codec="utf-8"))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | texts
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_a_value_survives(value: Any) -> None:
    assert jsonio.loads(jsonio.dumps(value)) == value
    assert jsonio.loads(jsonio.dumps_bytes(value)) == value
    assert jsonio.loads(jsonio.format_pretty(value).encode()) == value


def outcome(read: Callable[[bytes], Any], data: bytes) -> tuple[str, str]:
    try:
        value = read(data)
    except errors.ParseError as err:
        return "refused", str(err)
    return type(value).__name__, repr(value)


@given(values, st.data())
def test_the_quick_reader_reads_and_refuses_the_same(value: Any, draw: st.DataObject) -> None:
    data = jsonio.answer_bytes(value)
    assert outcome(jsonio.read, data) == outcome(jsonio.loads, data)
    at = draw.draw(st.integers(0, len(data) - 1))
    torn = data[:at] + draw.draw(st.binary(max_size=2)) + data[at + 1 :]
    assert outcome(jsonio.read, torn) == outcome(jsonio.loads, torn)


@pytest.mark.parametrize(
    "text",
    [
        "1e400",
        "-0",
        "-0.0",
        "1" * 40,
        str(2**63),
        str(2**64),
        "NaN",
        '"\\ud800"',
        '{"a":1,"a":2}',
        " 1 ",
        "1E5",
        "\ufeff1",
        '"\x01"',
        "[1,]",
        "01",
        "[" * 5000 + "]" * 5000,
        "1e-400",
        "",
        "0.1",
    ],
)
def test_the_quick_reader_and_odd_texts(text: str) -> None:
    data = text.encode()
    assert outcome(jsonio.read, data) == outcome(jsonio.loads, data)


@given(values)
def test_others_read_it_and_it_fits_on_a_line_and_into_a_frame(value: Any) -> None:
    data = jsonio.dumps_bytes(value)
    assert json.loads(data) == value
    assert not [byte for byte in data if byte < 0x20 or byte > 0x7E]


def test_compact_text_has_no_spaces_and_keeps_the_order() -> None:
    assert jsonio.dumps({"b": [1, "ü"], "a": None}) == '{"b":[1,"\\u00fc"],"a":null}'


def test_pretty_text_is_sorted_and_readable() -> None:
    assert jsonio.format_pretty({"b": "ü", "a": 1}) == '{\n  "a": 1,\n  "b": "ü"\n}'


def test_enumerations_travel_as_their_values() -> None:
    class Number(IntEnum):
        FOUR = 4

    assert jsonio.dumps([DiskTemplate.FILE, Number.FOUR]) == '["file",4]'


def test_stored_json_is_spliced_in_unparsed() -> None:
    assert jsonio.dumps([True, jsonio.RawJSON('{"a":  1}')]) == '[true,{"a":  1}]'


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "line 1 column 1"),
        ("[1,", "line 1 column 4"),
        ('{\n "a": 1,\n "b" 2}', "line 3 column 6"),
        ("[1] x", "line 1 column 5"),
        ("{'a': 1}", "line 1 column 2"),
        ('["a\nb"]', "line 1 column 4"),
        ('"abc', "line 1 column 1"),
        ("nul", "line 1 column 1"),
        (b"\xff", "byte 0"),
        (b'["caf\xe9"]', "byte 5"),
    ],
)
def test_bad_text_is_told_with_its_place(text: str | bytes, place: str) -> None:
    with pytest.raises(errors.ParseError, match=place):
        jsonio.loads(text)


@pytest.mark.parametrize("text", ["NaN", "[-Infinity]", "Infinity", "1e999", "-1e999"])
def test_what_is_no_json_number_is_refused(text: str) -> None:
    with pytest.raises(errors.ParseError, match="number"):
        jsonio.loads(text)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "9" * 10_000])
def test_text_made_to_break_the_parser_is_refused(text: str) -> None:
    with pytest.raises(errors.ParseError, match="invalid JSON"):
        jsonio.loads(text)


@given(st.binary(max_size=40) | st.text(max_size=40))
def test_any_input_is_read_or_refused(data: bytes | str) -> None:
    try:
        value = jsonio.loads(data)
    except errors.ParseError:
        return
    assert jsonio.loads(jsonio.dumps(value)) == value


def test_what_is_no_json_value_cannot_be_written() -> None:
    for value in (float("nan"), float("inf"), {1, 2}, object()):
        with pytest.raises((TypeError, ValueError)):
            jsonio.dumps(value)
