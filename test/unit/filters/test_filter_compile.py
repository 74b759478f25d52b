"""Conditions over rows."""

import pytest

from ganeti.errors import ParameterError
from ganeti.filters import compile, patterns
from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Operand
from ganeti.filters.tree import from_wire

FIELDS = {
    "name": Operand("name", FieldKind.TEXT, hostname=True),
    "os": Operand("os", FieldKind.TEXT),
    "up": Operand("up", FieldKind.BOOL),
    "mem": Operand("mem", FieldKind.UNIT),
    "speed": Operand("speed", FieldKind.FLOAT),
    "ctime": Operand("ctime", FieldKind.TIMESTAMP),
    "id": Operand("id", FieldKind.NUMBER, numeric_text=True),
    "tags": Operand("tags", FieldKind.OTHER),
    "any": Operand("any", FieldKind.OTHER),
    "start": Operand("start", FieldKind.OTHER, seconds=True),
}


def passes(wire, **row):
    """Whether a row of values passes; an int with a leading ``s`` key sets the status."""
    tree = from_wire(wire)
    compile.check(tree, FIELDS.__getitem__)

    def column(name):
        return lambda values: values[name] if isinstance(values[name], tuple) else (0, values[name])

    test = compile.predicate(tree, FIELDS.__getitem__, column, patterns.Budget())
    return test(row)


@pytest.mark.parametrize(
    ("wire", "row", "expected"),
    [
        (["==", "os", "debian"], {"os": "debian"}, True),
        (["==", "os", "deb"], {"os": "debian"}, False),
        (["!=", "os", "deb"], {"os": "debian"}, True),
        (["<", "os", "e"], {"os": "debian"}, True),
        ([">=", "os", "e"], {"os": "debian"}, False),
        (["==", "os", "deb"], {"os": "deb.ian"}, False),
        (["==", "name", "web1"], {"name": "web1.example.com"}, True),
        (["==", "name", "web1.example"], {"name": "web1.example.com"}, True),
        (["==", "name", "web"], {"name": "web1.example.com"}, False),
        (["!=", "name", "web1"], {"name": "web1.example.com"}, False),
        (["|", ["==", "name", "web1"], ["==", "name", "x"]], {"name": "web1.example.com"}, True),
        (["|", ["==", "name", "web"], ["==", "name", "x"]], {"name": "web1.example.com"}, False),
        (["|", ["==", "id", "5"], ["==", "id", 6]], {"id": 5}, True),
        (["==", "id", "005"], {"id": 5}, True),
        (["==", "mem", 128], {"mem": 128}, True),
        (["<", "mem", 128], {"mem": 127}, True),
        (["<=", "mem", 128], {"mem": 128}, True),
        ([">", "ctime", 1000], {"ctime": 1000.5}, True),
        (["==", "speed", 1], {"speed": 1.0}, True),
        (["?", "up"], {"up": True}, True),
        (["?", "up"], {"up": False}, False),
        (["!", ["?", "up"]], {"up": False}, True),
        (["=~", "name", "b1"], {"name": "web1"}, True),
        (["=~", "name", "^b1"], {"name": "web1"}, False),
        (["=~", "name", "(?i)^WEB"], {"name": "web1"}, True),
        (["=~", "name", r"^(?!db).*\d$"], {"name": "web1"}, True),
        (["=[]", "tags", "a"], {"tags": ["a", "b"]}, True),
        (["=[]", "tags", "c"], {"tags": ["a", "b"]}, False),
        (["=[]", "tags", "c"], {"tags": []}, False),
        (["=[]", "tags", 1], {"tags": []}, False),
        (["=[]", "tags", "c"], {"tags": [None, "c"]}, True),
        (["=[]", "tags", 2], {"tags": [1, 2]}, True),
        (["==", "any", "x"], {"any": "x"}, True),
        ([">", "any", 1], {"any": 1.5}, True),
        (["?", "any"], {"any": True}, True),
        (["==", "start", 100], {"start": [100, 999]}, True),
        (["<", "start", 100], {"start": [100, 999]}, False),
        (["&"], {}, True),
        (["|"], {}, False),
        (["&", ["?", "up"], ["==", "mem", 1]], {"up": True, "mem": 2}, False),
        (["|", ["?", "up"], ["==", "mem", 1]], {"up": True, "mem": 2}, True),
    ],
)
def test_conditions(wire, row, expected):
    assert passes(wire, **row) is expected


@pytest.mark.parametrize("status", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "wire",
    [
        ["==", "os", "x"],
        ["<", "os", "x"],
        ["==", "name", "x"],
        ["|", ["==", "name", "x"], ["==", "name", "y"]],
        ["==", "mem", 1],
        ["==", "any", 1],
        ["?", "up"],
        ["?", "any"],
        ["=~", "os", "x"],
        ["=[]", "tags", "x"],
        ["<", "start", 1],
    ],
)
def test_without_a_value_a_condition_is_true_and_its_negation_false(wire, status):
    row = dict.fromkeys(FIELDS, (status, None))
    assert passes(wire, **row) is True
    assert passes(["!", wire], **row) is False


@pytest.mark.parametrize(
    "wire",
    [
        ["==", "os", "x"],
        ["<", "os", "x"],
        ["==", "any", "x"],
        ["<", "any", 5],
        ["?", "any"],
        ["=~", "any", "x"],
        ["=[]", "any", "x"],
        ["==", "start", 5],
    ],
)
def test_null_as_a_normal_value_fulfils_no_condition(wire):
    assert passes(wire, **dict.fromkeys(FIELDS)) is False


@pytest.mark.parametrize(
    ("wire", "told"),
    [
        (["==", "os", 5], "'os' is a text"),
        (["<", "mem", "5"], "'mem' is a number"),
        (["==", "ctime", "x"], "'ctime' is a number"),
        (["==", "up", "x"], "write it without a value"),
        (["==", "up", 1], "write it without a value"),
        (["?", "os"], "'os' is not a boolean"),
        (["?", "mem"], "'mem' is not a boolean"),
        (["=~", "mem", "5"], "'mem' is not a text"),
        (["=~", "up", "5"], "'up' is not a text"),
        (["=[]", "os", "x"], "'os' is not a list"),
        (["==", "id", "x5"], "'id' is a number"),
        (["==", "start", "x"], "'start' is a time"),
    ],
)
def test_kinds_that_cannot_fit_are_refused_before_any_row(wire, told):
    with pytest.raises(ParameterError, match=told):
        compile.check(from_wire(["&", ["|"], wire]), FIELDS.__getitem__)


@pytest.mark.parametrize(
    ("wire", "value", "told"),
    [
        (["==", "any", "x"], 5, "needs a text in the field 'any', which holds a number"),
        (["==", "any", 5], "x", "needs a number"),
        (["==", "any", 1], True, "which holds a boolean"),
        (["<", "any", 1], [1], "which holds a list"),
        (["=~", "any", "x"], 5, "needs a text"),
        (["?", "any"], "x", "needs true or false"),
        (["?", "any"], 1, "needs true or false"),
        (["=[]", "any", "x"], "x", "needs a list of texts"),
        (["=[]", "any", "x"], [1], "which holds a number"),
        (["=[]", "any", 1], ["x"], "needs a list of integers"),
        (["=[]", "any", 1], [True], "which holds a boolean"),
        (["=[]", "any", "x"], {"x": 1}, "which holds an object"),
        (["=[]", "any", "x"], [["x"]], "which holds a list"),
    ],
)
def test_wrong_values_are_an_error(wire, value, told):
    with pytest.raises(ParameterError, match=told):
        passes(wire, any=value)


def test_wrong_pattern_is_refused_before_any_row():
    with pytest.raises(ParameterError, match=r"'\(x' is wrong at character 3: missing \)"):
        compile.check(from_wire(["=~", "os", "(x"]), FIELDS.__getitem__)
