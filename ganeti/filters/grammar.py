"""The textual filter language; the only importer of pyparsing.

Conditions are a pyparsing grammar; how they are joined by ``not``, ``and``, ``or`` and parentheses
is worked out with an explicit stack, in linear time and for any depth. pyparsing is imported by
the first parse.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

from ganeti.errors import QueryFilterParseError
from ganeti.filters import tree
from ganeti.filters.glob import glob_to_regex

if TYPE_CHECKING:
    import pyparsing as pp

Wire = list[Any]

#: Characters of one filter text.
MAX_TEXT_LENGTH = 100_000

_WORD = r"[A-Za-z0-9_/.]"
_FIELD = rf"(?!(?:and|or|not|in)(?!{_WORD}))[A-Za-z]{_WORD}*"
_STRING = (
    r'"(?:[^"\n\r\\]|""|\\(?:[^x]|x[0-9a-fA-F]+))*"'
    r"|'(?:[^'\n\r\\]|''|\\(?:[^x]|x[0-9a-fA-F]+))*'"
)
_REGEX = r"m?([/#^|])((?:\\.|(?!\1)[^\\\n\r])*)\1([A-Za-z]*)"
_REGEX_FLAGS = frozenset("is")

_AFTER_CONDITION = "'and', 'or' or the end of the filter"
_BEFORE_CONDITION = "a condition, 'not' or '('"


class _Kind(Enum):
    CONDITION = "condition"
    AND = "and"
    OR = "or"
    NOT = "not"
    OPEN = "("
    CLOSE = ")"


@dataclass(slots=True)
class _Token:
    kind: _Kind
    #: characters before it
    location: int
    wire: Wire | None = None


@dataclass(slots=True)
class _Group:
    """Content of two parentheses: terms joined by ``or``, of factors joined by ``and``."""

    location: int
    terms: list[Wire] = field(default_factory=list)
    factors: list[Wire] = field(default_factory=list)
    negations: int = 0

    def add(self, wire: Wire) -> None:
        for _ in range(self.negations):
            wire = ["!", wire]
        self.negations = 0
        self.factors.append(wire)

    def end_term(self) -> None:
        self.terms.append(_join("&", self.factors))
        self.factors = []

    def close(self) -> Wire:
        self.end_term()
        return _join("|", self.terms)


def _join(operator: str, parts: list[Wire]) -> Wire:
    return parts[0] if len(parts) == 1 else [operator, *parts]


def parse(text: str) -> Wire:
    """The JSON form of a filter text such as ``status == "running" and not "prod" in tags``.

    Raises QueryFilterParseError: the line, a line with a caret below the place, and what was
    expected there.
    """
    import pyparsing as pp

    if len(text) > MAX_TEXT_LENGTH:
        raise QueryFilterParseError(f"A filter may have {MAX_TEXT_LENGTH} characters at most")
    # Tabs become one blank each, so that positions keep their meaning.
    text = text.replace("\t", " ")
    try:
        *tokens, end = _tokens().parse_string(text)
    except pp.ParseBaseException as err:
        raise _error(text, err.loc, _explain_expected(text, err)) from None
    wire = _assemble(text, tokens, end)
    tree.from_wire(wire)
    return wire


def _assemble(text: str, tokens: list[_Token], end: int) -> Wire:
    stack = [_Group(0)]
    complete = False
    for token in tokens:
        group = stack[-1]
        joins = token.kind in (_Kind.AND, _Kind.OR, _Kind.CLOSE)
        if joins is not complete or (token.kind is _Kind.CLOSE and len(stack) == 1):
            raise _error(text, token.location, _state(stack, complete))
        complete = token.kind in (_Kind.CONDITION, _Kind.CLOSE)
        match token.kind:
            case _Kind.CONDITION:
                assert token.wire is not None
                group.add(token.wire)
            case _Kind.NOT:
                group.negations += 1
            case _Kind.OPEN:
                stack.append(_Group(token.location))
            case _Kind.CLOSE:
                stack.pop()
                stack[-1].add(group.close())
            case _Kind.OR:
                group.end_term()
    if end < len(text.rstrip()) or not complete or len(stack) > 1:
        raise _error(text, end, _state(stack, complete))
    return stack[0].close()


def _state(stack: list[_Group], complete: bool) -> str:
    if not complete:
        return f"expected {_BEFORE_CONDITION}"
    if len(stack) > 1:
        column = stack[-1].location + 1
        return f"expected 'and', 'or' or the ')' that closes the '(' at character {column}"
    return f"expected {_AFTER_CONDITION}"


@cache
def _tokens() -> pp.ParserElement:
    """Grammar of a flat list of tokens, followed by the position of the first rest."""
    import pyparsing as pp

    def word(kind: _Kind) -> pp.ParserElement:
        end = rf"(?!{_WORD})" if kind.value.isalpha() else ""
        element = pp.Regex(re.escape(kind.value) + end)
        return element.set_parse_action(lambda _, loc, __: _Token(kind, loc))

    def condition(_: str, loc: int, found: pp.ParseResults) -> _Token:
        return _Token(_Kind.CONDITION, loc, _condition(list(found)))

    name = pp.Regex(_FIELD).set_name("a field name")
    string = pp.Regex(_STRING).set_name("a text in quotes")
    string.set_parse_action(lambda found: str(found[0])[1:-1])
    number = pp.Regex(r"[-+]?[0-9]+").set_parse_action(lambda found: int(found[0]))
    value = (string | number).set_name("a text in quotes or an integer")
    regex = pp.Regex(_REGEX).set_name("a regular expression such as /^web/")
    regex.set_parse_action(_read_regex)
    member = pp.Regex(rf"(?:not\s+)?in(?!{_WORD})").set_name("'in' or 'not in'")
    member.set_parse_action(lambda found: " ".join(str(found[0]).split()))
    order = pp.Regex("==|!=|<=|>=|<|>|=(?![~*])")
    by_field = name + pp.Optional(
        (pp.Regex("[=!]~") - regex) | (pp.Regex(r"[=!]\*") - string) | (order - value)
    )
    element = (value - member - name) | by_field
    element = element.set_parse_action(condition)
    words = [word(kind) for kind in _Kind if kind is not _Kind.CONDITION]
    rest = pp.Empty().set_parse_action(lambda _, loc, __: loc)
    return pp.ZeroOrMore(pp.MatchFirst([*words, element])) + rest


def _condition(parts: list[Any]) -> Wire:
    match parts:
        case [str(name)]:
            return ["?", name]
        case [value, "in", name]:
            return ["=[]", name, value]
        case [value, "not in", name]:
            return ["!", ["=[]", name, value]]
        case [name, "=~", pattern]:
            return ["=~", name, pattern]
        case [name, "!~", pattern]:
            return ["!", ["=~", name, pattern]]
        case [name, "=*", glob]:
            return ["=~", name, glob_to_regex(glob)]
        case [name, "!*", glob]:
            return ["!", ["=~", name, glob_to_regex(glob)]]
        case [name, ("=" | "=="), value]:
            return ["==", name, value]
        case [name, order, value]:
            return [order, name, value]
    raise AssertionError(parts)


def _read_regex(text: str, location: int, found: pp.ParseResults) -> str:
    import pyparsing as pp

    matched = re.match(_REGEX, found[0])
    assert matched
    delimiter, body, flags = matched.groups()
    wrong = set(flags) - _REGEX_FLAGS
    if wrong:
        raise pp.ParseFatalException(
            text,
            location + matched.start(3),
            f"expected the flags i or s, not '{flags}', after a regular expression",
        )
    body = body.replace(f"\\{delimiter}", delimiter) if "\\" in body else body
    return f"(?{''.join(sorted(set(flags)))}){body}" if flags else body


def _explain_expected(text: str, err: pp.ParseBaseException) -> str:
    """Explain what the grammar expects at the place of the error."""
    message = err.msg[:1].lower() + err.msg[1:]
    rest = text[err.loc :]
    if rest[:1] in ("'", '"') and "quotes" in message:
        return "the text that begins here has no closing quote"
    word = re.match(_FIELD, rest)
    if word and "quotes" in message:
        return f'{message}; write "{word[0]}" if the text is meant'
    return message


def _error(text: str, location: int, problem: str) -> QueryFilterParseError:
    location = len(text) - len(text[location:].lstrip())
    location = min(location, len(text.rstrip()))
    start = text.rfind("\n", 0, location) + 1
    line = text[start:].partition("\n")[0]
    column = location - start
    shown = line
    if len(line) > 200:
        first = max(0, column - 100)
        shown, column = line[first : first + 200], column - first
    return QueryFilterParseError(f"The filter is wrong: {problem}\n{shown}\n{' ' * column}^")
