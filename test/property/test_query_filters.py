"""Filters: text and tree say the same, and the compiled filter agrees with a naive one."""

import operator
import re
from types import SimpleNamespace

from examples import examples
from hypothesis import assume, example, given
from hypothesis import strategies as st

from ganeti.errors import ParameterError, QueryFilterParseError
from ganeti.filters import compile, patterns, shape, tree
from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Operand
from ganeti.filters.grammar import parse
from ganeti.filters.tree import And, Compare, Contains, Match, Not, Or, Order, Truth
from ganeti.filters.unparse import format_filter
from ganeti.query.engine import Query
from ganeti.query.field import Field, Kind
from ganeti.query.live import Need

# text ----------------------------------------------------------------------------------------

field_names = st.from_regex(r"[A-Za-z][A-Za-z0-9_/.]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("and", "or", "not", "in")
)
values = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.text("ab'\"\\x0/#^| \t", max_size=8),
    st.integers(-(10**20), 10**20),
)
regexes = st.one_of(st.text("ab.*\\/#^|()im ", max_size=8), st.text(max_size=6))
any_condition = st.one_of(
    st.builds(Truth, field_names),
    st.builds(Compare, st.sampled_from(Order), field_names, values),
    st.builds(Match, field_names, regexes),
    st.builds(Contains, field_names, values),
)


def joined(conditions, min_size):
    """Strategy for trees over the conditions; logic operators have at least so many operands."""

    def extend(inner):
        operands = st.lists(inner, min_size=min_size, max_size=4).map(tuple)
        return st.one_of(st.builds(And, operands), st.builds(Or, operands), st.builds(Not, inner))

    return st.recursive(conditions, extend, max_leaves=12)


@given(joined(any_condition, 2))
@example(Not(Not(Truth("a"))))
@example(And((And((Truth("a"), Truth("b"))), Or((Truth("c"), Not(Match("d", "/#^|")))))))
def test_text_of_a_filter_is_read_back_as_the_same_filter(filter_tree):
    try:
        text = format_filter(filter_tree)
    except ParameterError:
        assume(False)
    wire = parse(text)
    assert tree.from_wire(wire) == filter_tree


@given(joined(any_condition, 0))
def test_json_form_is_read_back_as_the_same_filter(filter_tree):
    wire = tree.to_wire(filter_tree)
    again = tree.from_wire(wire)
    assert again == filter_tree
    assert tree.to_wire(again) == wire


@given(st.text(max_size=40) | st.text("ab=<>!~*()'\"/ 1nodriadt", max_size=40))
def test_any_text_is_a_filter_or_an_error_that_shows_the_place(text):
    told = ""
    try:
        wire = parse(text)
    except QueryFilterParseError as err:
        told = str(err)
    if told:
        problem, _, caret = told.rpartition("\n")
        assert problem.startswith("The filter is wrong: ")
        assert caret.strip(" ") == "^"
    else:
        assert tree.from_wire(wire) is not None


# meaning -------------------------------------------------------------------------------------

OPERANDS = {
    "name": Operand("name", FieldKind.TEXT, hostname=True),
    "os": Operand("os", FieldKind.TEXT),
    "up": Operand("up", FieldKind.BOOL),
    "mem": Operand("mem", FieldKind.UNIT),
    "id": Operand("id", FieldKind.NUMBER, numeric_text=True),
    "tags": Operand("tags", FieldKind.OTHER),
    "start": Operand("start", FieldKind.OTHER, seconds=True),
}
HOSTS = ["a", "a.x", "a.x.y", "b", "ab", "ab.x", ""]
WORDS = ["deb", "debian", "", "noop"]
number = st.integers(0, 4)
order = st.sampled_from(Order)

fitting = st.one_of(
    st.builds(Compare, order, st.just("name"), st.sampled_from(HOSTS)),
    st.builds(Compare, order, st.just("os"), st.sampled_from(WORDS)),
    st.just(Truth("up")),
    st.builds(Compare, order, st.just("mem"), number),
    st.builds(Compare, order, st.just("id"), st.one_of(number, number.map(str))),
    st.builds(Compare, order, st.just("start"), number),
    st.builds(Match, st.sampled_from(["name", "os"]), st.sampled_from(["^a", "x$", "b.", "o+"])),
    st.builds(Contains, st.just("tags"), st.sampled_from(["p", "q"])),
)


def cell(values_):
    """Strategy for ``(status, value)``: mostly a value, which may be null."""
    return st.one_of(
        st.tuples(st.just(0), values_),
        st.tuples(st.just(0), values_),
        st.just((0, None)),
        st.sampled_from([(2, None), (3, None), (4, None)]),
    )


row = st.fixed_dictionaries(
    {
        "name": cell(st.sampled_from(HOSTS)),
        "os": cell(st.sampled_from(WORDS)),
        "up": cell(st.booleans()),
        "mem": cell(number),
        "id": cell(number),
        "tags": cell(st.lists(st.sampled_from(["p", "q", "r"]), max_size=2)),
        "start": cell(st.tuples(number, st.integers(0, 999_999)).map(list)),
    }
)
COMPARE = {
    Order.EQ: operator.eq,
    Order.LT: operator.lt,
    Order.LE: operator.le,
    Order.GT: operator.gt,
    Order.GE: operator.ge,
}


def naive(node, cells):
    """What a filter means, straight from the rules of the language."""
    if isinstance(node, And):
        return all(naive(each, cells) for each in node.operands)
    if isinstance(node, Or):
        return any(naive(each, cells) for each in node.operands)
    if isinstance(node, Not):
        return not naive(node.operand, cells)
    status, got = cells[node.field]
    if status != 0:
        return True
    if got is None:
        return False
    if isinstance(node, Truth):
        return got is True
    if isinstance(node, Match):
        return re.search(node.pattern, got) is not None
    if isinstance(node, Contains):
        return node.value in got
    value = int(node.value) if node.field == "id" else node.value
    if node.field == "start":
        got = got[0]
    if node.field == "name" and node.order is Order.EQ:
        parts = got.split(".")
        return value in [".".join(parts[: end + 1]) for end in range(len(parts))]
    return COMPARE[node.order](got, value)


WITHOUT_VALUES = dict.fromkeys(OPERANDS, (3, None))


@given(joined(fitting, 0), st.lists(row, max_size=6))
@example(Or((Compare(Order.EQ, "name", "a"), Compare(Order.EQ, "name", "b"))), [WITHOUT_VALUES])
@example(Or((Compare(Order.EQ, "os", "deb"), Compare(Order.EQ, "mem", 1))), [WITHOUT_VALUES])
@example(Or((Compare(Order.EQ, "mem", 1), Compare(Order.EQ, "mem", 2))), [WITHOUT_VALUES])
@examples(60)
def test_compiled_filter_agrees_with_the_naive_one(filter_tree, rows):
    compile.check(filter_tree, OPERANDS.__getitem__)
    passes = compile.predicate(
        filter_tree,
        OPERANDS.__getitem__,
        lambda name: lambda cells: cells[name],
        patterns.Budget(60),
    )
    assert [passes(cells) for cells in rows] == [naive(filter_tree, cells) for cells in rows]


@given(joined(fitting, 0), st.lists(row, max_size=6))
@examples(60)
def test_bounds_on_names_and_relaxed_filters_lose_no_row(filter_tree, rows):
    bound = shape.candidate_values(filter_tree, frozenset({"name"}))
    relaxed = shape.relax(filter_tree, lambda name: name in ("os", "up", "tags"))
    for cells in rows:
        if naive(filter_tree, cells):
            if bound is not None:
                assert any(naive(Compare(Order.EQ, "name", value), cells) for value in bound)
            assert relaxed is None or naive(relaxed, cells)
    assert not {"os", "up", "tags"}.intersection(shape.fields_used(relaxed))


# the engine ----------------------------------------------------------------------------------


class Things(Kind):
    """Rows of cells; some of the fields are live, and an index finds names."""

    name = "thing"
    index_fields = frozenset({"name"})
    looks_up = False

    def __init__(self, rows):
        super().__init__()
        self.all = rows
        self.asked = []
        for name, operand in OPERANDS.items():
            needs = frozenset({Need.FACTS} if name in ("os", "tags") else ())
            getter = self.live_getter(name) if needs else self.static_getter(name)
            flags = (operand.hostname, operand.seconds, operand.numeric_text)
            self.add(Field(name, name, operand.kind, "A field", getter, needs, *flags))

    def static_getter(self, name):
        return lambda ctx: lambda number: self.all[number][name]

    def live_getter(self, name):
        def getter(ctx):
            facts = ctx.live[Need.FACTS]
            return lambda number: facts[number][name]

        return getter

    def rows(self, ctx):
        return list(range(len(self.all)))

    def candidates(self, ctx, values_):
        return [
            index
            for index, cells in enumerate(self.all)
            if any(naive(Compare(Order.EQ, "name", value), cells) for value in values_)
        ]

    def tasks(self, ctx, needs, rows):
        def ask():
            self.asked.append(list(rows))
            return {index: self.all[index] for index in rows}

        return {Need.FACTS: ask}


@given(
    joined(fitting, 0),
    st.lists(row, max_size=6),
    st.lists(st.sampled_from(sorted(OPERANDS)), max_size=3),
)
@examples(60)
def test_a_query_gives_the_rows_that_the_naive_filter_passes(filter_tree, rows, fields):
    kind = Things(rows)
    query = Query(kind, fields, tree.to_wire(filter_tree))
    answer = query.run(SimpleNamespace(config=object()))
    passed = [cells for cells in rows if naive(filter_tree, cells)]
    assert answer["data"] == [[cells[name] for name in fields] for cells in passed]
    live = {"os", "tags"}.intersection([*fields, *shape.fields_used(filter_tree)])
    assert len(kind.asked) <= (1 if live else 0)
