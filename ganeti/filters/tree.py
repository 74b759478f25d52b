"""Filters as a typed tree, and their JSON form (``["&", ["==", "name", "web1"], ...]``).

Reading the JSON form checks everything that can be said without knowing the fields: operators,
number and types of operands, depth and size. It walks with a stack of its own, so nesting of any
depth ends in an error that names the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from ganeti.errors import QueryFilterParseError

#: Operators inside each other.
MAX_DEPTH = 200
#: Operators in one filter; a list of names takes one for each name.
MAX_NODES = 50_000
#: Characters of one value.
MAX_VALUE_LENGTH = 65_536
#: Regular expressions in one filter: each takes time to compile.
MAX_PATTERNS = 500

Value: TypeAlias = str | int


class Order(StrEnum):
    """Comparisons; the values are the wire operators."""

    EQ = "=="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@dataclass(frozen=True, slots=True)
class And:
    """All operands hold; true without operands."""

    operands: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """One of the operands holds; false without operands."""

    operands: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    operand: Filter


@dataclass(frozen=True, slots=True)
class Truth:
    """A boolean field is true."""

    field: str


@dataclass(frozen=True, slots=True)
class Compare:
    order: Order
    field: str
    value: Value


@dataclass(frozen=True, slots=True)
class Match:
    """A regular expression is found somewhere in a text field."""

    field: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Contains:
    """A list field has the value as a member."""

    field: str
    value: Value


Condition: TypeAlias = Truth | Compare | Match | Contains
Filter: TypeAlias = And | Or | Not | Truth | Compare | Match | Contains

_LOGIC = frozenset({"&", "|", "!"})
_ORDERS = {"=": Order.EQ} | {str(order): order for order in Order}
_ARITY = {"?": 1, "=~": 2, "=[]": 2, "!=": 2} | dict.fromkeys(_ORDERS, 2)
OPERATORS = tuple(sorted(_LOGIC | set(_ARITY)))


@dataclass(slots=True)
class _Open:
    """A logic operator whose operands are being read."""

    operator: str
    rest: list[object]
    done: list[Filter] = field(default_factory=list)

    def close(self) -> Filter:
        if self.operator == "!":
            return Not(self.done[0])
        operands = tuple(self.done)
        return And(operands) if self.operator == "&" else Or(operands)


def from_wire(wire: object) -> Filter | None:
    """The tree of a filter in its JSON form; None for null, which lets everything pass.

    Raises QueryFilterParseError that quotes the part that is wrong.
    """
    if wire is None:
        return None
    stack: list[_Open] = []
    nodes = patterns = 0
    current = wire
    while True:
        nodes += 1
        read = _read(current)
        patterns += isinstance(read, Match)
        _check_size(len(stack), nodes, patterns)
        if isinstance(read, _Open):
            stack.append(read)
            done: Filter | None = None
        else:
            done = read
        while True:
            if done is not None:
                if not stack:
                    return done
                stack[-1].done.append(done)
            top = stack[-1]
            if len(top.done) < len(top.rest):
                current = top.rest[len(top.done)]
                break
            done = stack.pop().close()


def _check_size(depth: int, nodes: int, patterns: int) -> None:
    if depth >= MAX_DEPTH:
        raise QueryFilterParseError(f"The filter nests more than {MAX_DEPTH} operators")
    if nodes > MAX_NODES:
        raise QueryFilterParseError(f"The filter has more than {MAX_NODES} conditions")
    if patterns > MAX_PATTERNS:
        raise QueryFilterParseError(f"The filter has more than {MAX_PATTERNS} regular expressions")


def _read(wire: object) -> Filter | _Open:
    if not isinstance(wire, list | tuple) or not wire:
        raise QueryFilterParseError(
            f'A filter must be a list such as ["==", "name", "web1"], not {_quote(wire)}'
        )
    operator, rest = wire[0], list(wire[1:])
    if not isinstance(operator, str):
        raise QueryFilterParseError(
            f"A filter must start with an operator, not with {_quote(operator)}"
        )
    if operator in _LOGIC:
        if operator == "!":
            _check_arity(wire, operator, rest, 1)
        return _Open(operator, rest)
    wanted = _ARITY.get(operator)
    if wanted is None:
        raise QueryFilterParseError(
            f"{_quote(operator)} is not a filter operator; choose from {' '.join(OPERATORS)}"
        )
    _check_arity(wire, operator, rest, wanted)
    return _condition(wire, operator, rest)


def _condition(wire: object, operator: str, rest: Sequence[object]) -> Filter:
    name = rest[0]
    if not isinstance(name, str) or not name:
        raise QueryFilterParseError(
            f"The first operand of '{operator}' must be a field name, not {_quote(name)}"
        )
    if operator == "?":
        return Truth(name)
    value = _value(wire, rest[1])
    if operator == "=~":
        if not isinstance(value, str):
            raise QueryFilterParseError(
                f"'=~' needs a regular expression as a text, not {_quote(value)}"
            )
        return Match(name, value)
    if operator == "=[]":
        return Contains(name, value)
    if operator == "!=":
        return Not(Compare(Order.EQ, name, value))
    return Compare(_ORDERS[operator], name, value)


def _value(wire: object, value: object) -> Value:
    if isinstance(value, str):
        if len(value) > MAX_VALUE_LENGTH:
            raise QueryFilterParseError(
                f"A value in the filter has more than {MAX_VALUE_LENGTH} characters"
            )
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise QueryFilterParseError(
        f"{_quote(value)} in {_quote(wire)} is not a value for a condition:"
        " use a text or an integer"
    )


def _check_arity(wire: object, operator: str, rest: Sequence[object], wanted: int) -> None:
    if len(rest) != wanted:
        raise QueryFilterParseError(
            f"'{operator}' takes {wanted} operand{'s' if wanted > 1 else ''},"
            f" not {len(rest)}, in {_quote(wire)}"
        )


def _quote(value: object, limit: int = 60) -> str:
    """A short text of a JSON value; lists inside lists are not shown."""
    if isinstance(value, list | tuple):
        parts = ["[...]" if isinstance(part, list | tuple) else _quote(part) for part in value[:4]]
        return f"[{', '.join(parts + ['...'] * (len(value) > 4))}]"
    if isinstance(value, dict):
        return "an object"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and value.bit_length() > 200:
        return "a huge number"
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}..."


def to_wire(tree: Filter | None) -> list[object] | None:
    """The JSON form of a tree; ``from_wire`` returns an equal tree."""
    if tree is None:
        return None
    match tree:
        case And(operands):
            return ["&", *map(to_wire, operands)]
        case Or(operands):
            return ["|", *map(to_wire, operands)]
        case Not(operand):
            return ["!", to_wire(operand)]
        case Truth(name):
            return ["?", name]
        case Compare(order, name, value):
            return [str(order), name, value]
        case Match(name, pattern):
            return ["=~", name, pattern]
        case Contains(name, value):
            return ["=[]", name, value]
