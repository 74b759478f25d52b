"""The JSON form of filters."""

import pytest

from ganeti.errors import QueryFilterParseError
from ganeti.filters import tree
from ganeti.filters.tree import And, Compare, Contains, Match, Not, Or, Order, Truth


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        (None, None),
        (["?", "offline"], Truth("offline")),
        (["=", "name", "a"], Compare(Order.EQ, "name", "a")),
        (["==", "name", "a"], Compare(Order.EQ, "name", "a")),
        (["!=", "name", "a"], Not(Compare(Order.EQ, "name", "a"))),
        (["<", "id", 5], Compare(Order.LT, "id", 5)),
        (["<=", "id", 5], Compare(Order.LE, "id", 5)),
        ([">", "id", -5], Compare(Order.GT, "id", -5)),
        ([">=", "id", 5.0], Compare(Order.GE, "id", 5)),
        (["=~", "name", "^a"], Match("name", "^a")),
        (["=[]", "tags", "x"], Contains("tags", "x")),
        (["=[]", "ids", 7], Contains("ids", 7)),
        (["!", ["?", "a"]], Not(Truth("a"))),
        (["&"], And(())),
        (["|"], Or(())),
        (["&", ["?", "a"], ["|", ["?", "b"]]], And((Truth("a"), Or((Truth("b"),))))),
        (("&", ("?", "a")), And((Truth("a"),))),
    ],
)
def test_read(wire, expected):
    assert tree.from_wire(wire) == expected


@pytest.mark.parametrize(
    ("wire", "told"),
    [
        ([], "must be a list"),
        ("name", "must be a list"),
        ({}, "an object"),
        (5, "not 5"),
        (True, "not true"),
        ([["?", "a"]], "must start with an operator"),
        (["===", "a", "b"], "not a filter operator"),
        (["?"], "'?' takes 1 operand, not 0"),
        (["?", "a", "b"], "takes 1 operand, not 2"),
        (["==", "a"], "takes 2 operands, not 1"),
        (["!", ["?", "a"], ["?", "b"]], "takes 1 operand, not 2"),
        (["!"], "takes 1 operand, not 0"),
        (["==", 5, "b"], "field name, not 5"),
        (["==", "", "b"], "field name"),
        (["==", "a", 1.5], "integer"),
        (["==", "a", None], "null"),
        (["==", "a", True], "true"),
        (["==", "a", ["x"]], "integer"),
        (["==", "a", float("inf")], "integer"),
        (["==", "a", float("nan")], "integer"),
        (["=~", "a", 5], "regular expression as a text"),
        (["&", ["?", "a"], 3], "not 3"),
        (["!", None], "not null"),
        (["==", "a", "x" * 70_000], "65536 characters"),
        ([10**5000], "a huge number"),
    ],
)
def test_refused(wire, told):
    with pytest.raises(QueryFilterParseError) as info:
        tree.from_wire(wire)
    assert told in str(info.value)
    assert len(str(info.value)) < 500


@pytest.mark.parametrize("depth", [201, 10_000, 200_000])
@pytest.mark.parametrize("operator", ["!", "&", "|"])
def test_too_deep_is_an_error_not_a_crash(depth, operator):
    wire = ["?", "a"]
    for _ in range(depth):
        wire = [operator, wire]
    with pytest.raises(QueryFilterParseError, match="more than 200 operators"):
        tree.from_wire(wire)


def test_deepest_that_is_allowed():
    wire = ["?", "a"]
    for _ in range(199):
        wire = ["!", wire]
    assert tree.to_wire(tree.from_wire(wire)) == wire


def test_too_many_conditions():
    with pytest.raises(QueryFilterParseError, match="more than 50000 conditions"):
        tree.from_wire(["|", *(["?", "a"] for _ in range(50_001))])


def test_too_many_patterns():
    with pytest.raises(QueryFilterParseError, match="regular expressions"):
        tree.from_wire(["|", *(["=~", "a", f"x{number}"] for number in range(501))])


def test_trees_can_be_compared_and_hashed():
    one, two = (tree.from_wire(["&", ["?", "a"], ["==", "b", 1]]) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
