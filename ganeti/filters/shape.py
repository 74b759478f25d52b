"""The names and fields in a filter, found without looking at a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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


def conditions(tree: Filter | None) -> Iterator[Condition]:
    """All conditions, from left to right."""
    stack: list[Filter] = [] if tree is None else [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, And | Or):
            stack.extend(reversed(node.operands))
        elif isinstance(node, Not):
            stack.append(node.operand)
        else:
            yield node


def fields_used(tree: Filter | None) -> list[str]:
    """Names of the fields in conditions, each once, in order of appearance."""
    return list(dict.fromkeys(node.field for node in conditions(tree)))


def find_pinned_names(tree: Filter | None, name_field: str) -> list[Value] | None:
    """The names when a filter does nothing but list names, in its order; else None.

    Such a filter is one ``==`` on the name field, or several under ``|``. Repeated names are
    kept. A query then looks the names up, and a missing one is an error.
    """
    names: list[Value] = []
    stack: list[Filter] = [] if tree is None else [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, Or):
            stack.extend(reversed(node.operands))
        elif isinstance(node, Compare) and node.order is Order.EQ and node.field == name_field:
            names.append(node.value)
        else:
            return None
    return None if tree is None else names


def candidate_values(tree: Filter | None, name_fields: frozenset[str]) -> set[Value] | None:
    """Values one of which a name field must equal in every row that passes; None for no bound.

    Used to look rows up in an index before the filter itself decides.
    """
    match tree:
        case Compare(Order.EQ, name, value) if name in name_fields:
            return {value}
        case Or(operands):
            union: set[Value] = set()
            for operand in operands:
                found = candidate_values(operand, name_fields)
                if found is None:
                    return None
                union |= found
            return union
        case And(operands):
            bounds = [candidate_values(operand, name_fields) for operand in operands]
            return min((bound for bound in bounds if bound is not None), key=len, default=None)
        case _:
            return None


def relax(tree: Filter | None, unknown: Callable[[str], bool]) -> Filter | None:
    """A filter without the ``unknown`` fields that passes every row that ``tree`` may pass.

    None when all rows may pass. Conditions on unknown fields count as passed, also below ``!``:
    negations are moved inwards first, so that the result is never too strict.
    """
    return None if tree is None else _relax(tree, unknown, True)


def _relax(node: Filter, unknown: Callable[[str], bool], positive: bool) -> Filter | None:
    match node:
        case Not(operand):
            return _relax(operand, unknown, not positive)
        case And(operands) | Or(operands):
            parts = [_relax(operand, unknown, positive) for operand in operands]
            known = tuple(part for part in parts if part is not None)
            if isinstance(node, And) is positive:
                return And(known) if known else None
            return Or(known) if len(known) == len(parts) else None
        case Truth() | Compare() | Match() | Contains():
            if unknown(node.field):
                return None
            return node if positive else Not(node)
