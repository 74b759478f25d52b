"""From a filter tree to one function that tells whether a row passes.

Values come from columns: functions of a row that return ``(status, value)``. A condition on a
value whose status is not 0 is true; a value of the wrong type is a ParameterError. Where the kind
of a field settles the type, the error comes before any row is read.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from ganeti.errors import ParameterError
from ganeti.filters import patterns, shape
from ganeti.filters.answer import FieldKind
from ganeti.filters.tree import (
    And,
    Compare,
    Condition,
    Contains,
    Filter,
    Match,
    Not,
    Or,
    Order,
    Truth,
    Value,
)

R = TypeVar("R")
Cell: TypeAlias = tuple[int, Any]
Column: TypeAlias = Callable[[R], Cell]
Predicate: TypeAlias = Callable[[R], bool]


@dataclass(frozen=True, slots=True)
class Operand:
    """Facts about a field that a condition compares with."""

    name: str
    kind: FieldKind
    #: ``==`` also accepts a short name: what the value begins with, up to a dot
    hostname: bool = False
    #: values are ``[seconds, microseconds]``, of which the seconds are compared
    seconds: bool = False
    #: numbers may be given as text (job ids)
    numeric_text: bool = False


#: Numbers as text; longer ones would be refused by ``int``.
_DIGITS = re.compile("[0-9]{1,18}")
_NUMERIC = frozenset({FieldKind.NUMBER, FieldKind.FLOAT, FieldKind.UNIT, FieldKind.TIMESTAMP})
_ORDERS: dict[Order, Callable[[Any, Any], bool]] = {
    Order.EQ: operator.eq,
    Order.LT: operator.lt,
    Order.LE: operator.le,
    Order.GT: operator.gt,
    Order.GE: operator.ge,
}


def check(tree: Filter | None, operand: Callable[[str], Operand]) -> None:
    """Refuse a filter that cannot be evaluated, whatever the rows.

    Raises ParameterError: a condition that does not fit the kind of its field, a wrong pattern;
    and whatever ``operand`` raises for an unknown field.
    """
    for condition in shape.conditions(tree):
        _check_kind(condition, operand(condition.field))
        if isinstance(condition, Match):
            patterns.compile_pattern(condition.pattern)


def predicate(
    tree: Filter,
    operand: Callable[[str], Operand],
    column: Callable[[str], Column[R]],
    budget: patterns.Budget,
) -> Predicate[R]:
    """The compiled filter; it holds the columns, so it serves one request only.

    The function raises ParameterError for a value that does not fit the condition.
    """
    match tree:
        case And(operands):
            return _all([predicate(part, operand, column, budget) for part in operands])
        case Or(operands):
            values, rest = _collect_listed_values(operands, operand)
            parts = [
                _test_membership(column(name), operand(name), found)
                for name, found in values.items()
            ]
            parts += [predicate(part, operand, column, budget) for part in rest]
            return _any(parts)
        case Not(inner):
            negated = predicate(inner, operand, column, budget)
            return lambda row: not negated(row)
        case Truth(name):
            return _test_truth(column(name), operand(name))
        case Compare(order, name, value):
            return _compare(column(name), operand(name), order, value)
        case Match(name, pattern):
            return _match(column(name), operand(name), patterns.matcher(pattern, budget))
        case Contains(name, value):
            return _contains(column(name), operand(name), value)


def _all(parts: list[Predicate[R]]) -> Predicate[R]:
    if len(parts) == 1:
        return parts[0]

    def test(row: R) -> bool:
        for part in parts:  # noqa: SIM110 - a generator would cost a frame for each row
            if not part(row):
                return False
        return True

    return test


def _any(parts: list[Predicate[R]]) -> Predicate[R]:
    if len(parts) == 1:
        return parts[0]

    def test(row: R) -> bool:
        for part in parts:  # noqa: SIM110 - a generator would cost a frame for each row
            if part(row):
                return True
        return False

    return test


def _collect_listed_values(
    operands: tuple[Filter, ...], operand: Callable[[str], Operand]
) -> tuple[dict[str, set[Value]], list[Filter]]:
    """Several ``==`` on one field under ``|`` as sets of values, and the other operands.

    A list of names then costs one look-up for each row instead of one comparison for each name.
    """
    values: dict[str, set[Value]] = {}
    rest: list[Filter] = []
    for part in operands:
        if (
            isinstance(part, Compare)
            and part.order is Order.EQ
            and operand(part.field).kind is not FieldKind.OTHER
        ):
            value = part.value
            if operand(part.field).numeric_text:
                value = int(value)
            values.setdefault(part.field, set()).add(value)
        else:
            rest.append(part)
    return values, rest


def _test_membership(column: Column[R], operand: Operand, values: set[Value]) -> Predicate[R]:
    def test(row: R) -> bool:
        status, got = column(row)
        return got in values or status != 0

    if not operand.hostname:
        return test

    def test_hostname(row: R) -> bool:
        status, got = column(row)
        if got in values or status != 0:
            return True
        end = got.find(".") if got else -1
        while end >= 0:
            if got[:end] in values:
                return True
            end = got.find(".", end + 1)
        return False

    return test_hostname


def _test_truth(column: Column[R], operand: Operand) -> Predicate[R]:
    if operand.kind is FieldKind.BOOL:

        def test(row: R) -> bool:
            status, got = column(row)
            return status != 0 or bool(got)

    else:

        def test(row: R) -> bool:
            status, got = column(row)
            if status != 0:
                return True
            if got is not None and not isinstance(got, bool):
                raise _mismatch(operand, got, "true or false")
            return bool(got)

    return test


def _compare(column: Column[R], operand: Operand, order: Order, value: Value) -> Predicate[R]:
    if operand.numeric_text and isinstance(value, str):
        value = int(value)
    if operand.seconds:
        return _compare_seconds(column, operand, _ORDERS[order], value)
    if operand.kind is FieldKind.OTHER:
        return _compare_other(column, operand, _ORDERS[order], value)
    if order is Order.EQ:
        return _equal(column, operand, value)
    holds = _ORDERS[order]

    def test(row: R) -> bool:
        status, got = column(row)
        return status != 0 or (got is not None and holds(got, value))

    return test


def _equal(column: Column[R], operand: Operand, value: Value) -> Predicate[R]:
    if operand.hostname:
        start = f"{value}."

        def test(row: R) -> bool:
            status, got = column(row)
            return got == value or status != 0 or (got is not None and got.startswith(start))

    else:

        def test(row: R) -> bool:
            status, got = column(row)
            return got == value or status != 0

    return test


def _compare_other(
    column: Column[R], operand: Operand, holds: Callable[[object, object], bool], value: Value
) -> Predicate[R]:
    wanted = "a text" if isinstance(value, str) else "a number"
    types: tuple[type, ...] = (str,) if isinstance(value, str) else (int, float)

    def test(row: R) -> bool:
        status, got = column(row)
        if status != 0:
            return True
        if got is None:
            return False
        if not isinstance(got, types) or isinstance(got, bool):
            raise _mismatch(operand, got, wanted)
        return holds(got, value)

    return test


def _compare_seconds(
    column: Column[R], operand: Operand, holds: Callable[[object, object], bool], value: Value
) -> Predicate[R]:
    def test(row: R) -> bool:
        status, got = column(row)
        if status != 0:
            return True
        if got is None:
            return False
        return holds(got[0], value)

    return test


def _match(column: Column[R], operand: Operand, found: Callable[[str], bool]) -> Predicate[R]:
    def test(row: R) -> bool:
        status, got = column(row)
        if status != 0:
            return True
        if got is None:
            return False
        if not isinstance(got, str):
            raise _mismatch(operand, got, "a text")
        return found(got)

    return test


def _contains(column: Column[R], operand: Operand, value: Value) -> Predicate[R]:
    text = isinstance(value, str)
    wanted = f"a list of {'texts' if text else 'integers'}"

    def test(row: R) -> bool:
        status, got = column(row)
        if status != 0:
            return True
        if got is None:
            return False
        if not isinstance(got, list | tuple):
            raise _mismatch(operand, got, wanted)
        for item in got:
            if item is not None and (isinstance(item, str) is not text or isinstance(item, bool)):
                raise _mismatch(operand, item, wanted)
        return value in got

    return test


def _mismatch(operand: Operand, got: object, wanted: str) -> ParameterError:
    return ParameterError(
        f"The filter needs {wanted} in the field '{operand.name}', which holds {_type_word(got)}"
    )


def _type_word(value: object) -> str:
    for types, word in (
        (bool, "a boolean"),
        (str, "a text"),
        ((int, float), "a number"),
        ((list, tuple), "a list"),
        (dict, "an object"),
    ):
        if isinstance(value, types):
            return word
    return "nothing" if value is None else "something else"


def _check_kind(condition: Condition, operand: Operand) -> None:
    """Refuse a condition whose field can never hold what it compares with."""
    kind = operand.kind
    match condition:
        case Truth():
            fits = kind in (FieldKind.BOOL, FieldKind.OTHER)
            problem = "is not a boolean: compare it with a value"
        case Compare(_, _, value) if operand.seconds:
            fits = isinstance(value, int)
            problem = "is a time: compare it with seconds since 1970"
        case Compare(_, _, value):
            fits, problem = _fits_value(operand, value)
        case Match():
            fits = kind in (FieldKind.TEXT, FieldKind.OTHER)
            problem = "is not a text: it cannot be matched with a regular expression"
        case Contains():
            fits = kind is FieldKind.OTHER
            problem = "is not a list: it has no members"
    if not fits:
        raise ParameterError(f"The filter is wrong: the field '{operand.name}' {problem}")


def _fits_value(operand: Operand, value: Value) -> tuple[bool, str]:
    kind = operand.kind
    if kind is FieldKind.BOOL:
        return False, "is true or false: write it without a value"
    if kind is FieldKind.TEXT:
        return isinstance(value, str), f"is a text: write the value in quotes, not {value!r:.40}"
    if kind in _NUMERIC:
        if operand.numeric_text and isinstance(value, str):
            return bool(_DIGITS.fullmatch(value)), f"is a number, not {value!r:.40}"
        return isinstance(value, int), f"is a number, not {value!r:.40}"
    return True, ""
