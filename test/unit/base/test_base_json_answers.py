"""Answers are written by another library than requests; what is read is the same."""

from __future__ import annotations

import enum
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganeti.base import jsonio

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


class Word(enum.StrEnum):
    UP = "up"


@given(PLAIN)
def test_the_same_value_is_read(value: object) -> None:
    data = jsonio.answer_bytes(value)
    assert jsonio.loads(data) == jsonio.loads(jsonio.dumps_bytes(value))
    assert b"\x03" not in data


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (jsonio.RawJSON('{"id":7}'), {"id": 7}),
        ({"result": jsonio.RawJSON("[1]")}, {"result": [1]}),
        ([10**40, -(10**25)], [10**40, -(10**25)]),
        ({1: "a", 2: "b"}, {"1": "a", "2": "b"}),
        ([Word.UP, "\x03\x00\x7f\u2028é😀"], ["up", "\x03\x00\x7f\u2028é😀"]),
        ("\ud800", "\ud800"),
    ],
)
def test_unusual_values(value: object, read: object) -> None:
    assert jsonio.loads(jsonio.answer_bytes(value)) == read


@pytest.mark.parametrize("value", [object(), {"a": object()}, {(1, 2): 3}])
def test_what_is_no_data_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        jsonio.answer_bytes(value)


def test_a_number_that_is_none_does_not_become_one() -> None:
    data = jsonio.answer_bytes([math.nan, math.inf])
    assert jsonio.loads(data) == [None, None]


def test_too_deep_is_an_error_and_no_crash() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises((ValueError, RecursionError)):
        jsonio.answer_bytes(value)
    while value:
        value = value[0]  # type: ignore[assignment] # taking it apart must not recurse either
