"""From a filter tree back to the textual language, for messages and for storing by hand."""

from __future__ import annotations

import re

from ganeti.errors import ParameterError
from ganeti.filters.tree import And, Compare, Contains, Filter, Match, Not, Or, Truth, Value

_FIELD = re.compile(r"(?!(?:and|or|not|in)$)[A-Za-z][A-Za-z0-9_/.]*")
_STRING_BODY = r"(?:[^{q}\n\r\\]|{q}{q}|\\(?:[^x]|x[0-9a-fA-F]+))*"


def format_filter(tree: Filter) -> str:
    """The text of a filter; parsing it returns a filter with the same meaning.

    Raises ParameterError for what the language has no words for: ``&`` and ``|`` without
    operands, texts with both kinds of quotes or with line ends.
    """
    match tree:
        case And(operands):
            return _join("and", operands, (And, Or))
        case Or(operands):
            return _join("or", operands, (Or,))
        case Not(Match(name, pattern)):
            return f"{_name(name)} !~ {_regex(pattern)}"
        case Not(Contains(name, value)):
            return f"{_value(value)} not in {_name(name)}"
        case Not(operand):
            text = format_filter(operand)
            return f"not ({text})" if isinstance(operand, And | Or) else f"not {text}"
        case Truth(name):
            return _name(name)
        case Compare(order, name, value):
            return f"{_name(name)} {order} {_value(value)}"
        case Match(name, pattern):
            return f"{_name(name)} =~ {_regex(pattern)}"
        case Contains(name, value):
            return f"{_value(value)} in {_name(name)}"


def _join(word: str, operands: tuple[Filter, ...], grouped: tuple[type, ...]) -> str:
    if not operands:
        raise ParameterError(f"A filter text cannot say '{word}' without conditions")
    parts = (
        f"({format_filter(operand)})" if isinstance(operand, grouped) else format_filter(operand)
        for operand in operands
    )
    return f" {word} ".join(parts)


def _name(name: str) -> str:
    if not _FIELD.fullmatch(name):
        raise ParameterError(f"A filter text cannot contain the field name {name!r:.60}")
    return name


def _value(value: Value) -> str:
    if isinstance(value, int):
        return str(value)
    for quote in "\"'":
        if re.fullmatch(_STRING_BODY.format(q=quote), value) and "\t" not in value:
            return f"{quote}{value}{quote}"
    raise ParameterError(f"A filter text cannot contain the value {value!r:.60}")


def _regex(pattern: str) -> str:
    trailing = len(pattern) - len(pattern.rstrip("\\"))
    if trailing % 2 == 0 and not set("\n\r\t").intersection(pattern):
        for delimiter in "/#^|":
            escaped = "\\" + delimiter
            if escaped not in pattern:
                return f"{delimiter}{pattern.replace(delimiter, escaped)}{delimiter}"
    raise ParameterError(f"A filter text cannot contain the regular expression {pattern!r:.60}")
