"""What filters say about names and needs."""

import pytest

from ganeti.filters import shape
from ganeti.filters.tree import from_wire, to_wire

A, B = ["==", "name", "a"], ["=", "name", "b"]


@pytest.mark.parametrize(
    ("wire", "names"),
    [
        (None, None),
        (A, ["a"]),
        (["|", A, B], ["a", "b"]),
        (["|", B, ["|", A, A], B], ["b", "a", "a", "b"]),
        (["|"], []),
        (["&", A], None),
        (["!", A], None),
        (["|", A, ["==", "uuid", "a"]], None),
        (["|", A, ["<", "name", "a"]], None),
        (["|", A, ["=~", "name", "a"]], None),
    ],
)
def test_pinned_names(wire, names):
    assert shape.find_pinned_names(from_wire(wire), "name") == names


@pytest.mark.parametrize(
    ("wire", "values"),
    [
        (None, None),
        (A, {"a"}),
        (["|", A, ["==", "uuid", "u"]], {"a", "u"}),
        (["|", A, ["?", "x"]], None),
        (["|"], set()),
        (["&", ["?", "x"], ["|", A, B]], {"a", "b"}),
        (["&", A, ["|", A, B]], {"a"}),
        (["&", ["?", "x"]], None),
        (["&"], None),
        (["!", A], None),
        (["<", "name", "a"], None),
    ],
)
def test_candidate_values(wire, values):
    fields = frozenset({"name", "uuid"})
    assert shape.candidate_values(from_wire(wire), fields) == values


LIVE = ["?", "live"]


@pytest.mark.parametrize(
    ("wire", "relaxed"),
    [
        (None, None),
        (A, A),
        (LIVE, None),
        (["!", LIVE], None),
        (["&", A, LIVE], ["&", A]),
        (["&", A, ["!", LIVE]], ["&", A]),
        (["|", A, LIVE], None),
        (["!", ["|", A, LIVE]], ["&", ["!", A]]),
        (["!", ["&", A, LIVE]], None),
        (["!", ["!", A]], A),
        (["&"], None),
        (["|"], ["|"]),
        (["!", ["&"]], ["|"]),
    ],
)
def test_relax(wire, relaxed):
    assert to_wire(shape.relax(from_wire(wire), lambda name: name == "live")) == relaxed


def test_fields_used():
    tree = from_wire(["&", ["?", "c"], ["!", ["|", A, ["=[]", "t", 1]]], B, ["=~", "d", "x"]])
    assert shape.fields_used(tree) == ["c", "name", "t", "d"]
    assert shape.fields_used(None) == []
