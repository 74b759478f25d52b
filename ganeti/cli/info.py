"""The indented text of the info commands, which scripts read as YAML.

Pairs keep their order, mappings are sorted by key, list items begin with a dash. Values are
written as they are, as Ganeti does, but those that a YAML reader would refuse or take for
something else are quoted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ganeti.base import jsonio
from ganeti.base.json_types import JsonObject
from ganeti.base.record import Record
from ganeti.cli import formats
from ganeti.cli.command import Call

#: An ordered mapping: ``("key", value)``; values are texts, pairs, mappings or lists of them.
Pair = tuple[str, Any]

_INDENT = "  "
#: Texts that YAML would not read as plain text.
_NOT_PLAIN = (
    r"""\s*([-?:](\s|$)|[#&*!|>%@`"',\]}]|[~=]\s*$)|.*(:(\s|$)|\s\#)|.*[^ -~\u00a0-\ud7ff]"""
)
_FLOW = ("[", "{")

Scalar = Callable[[Any, int], str]


class Flow(Record):
    """A list or mapping in one line of the text; the other forms have all of it."""

    value: Any
    shown: str = ""

    def __str__(self) -> str:
        return self.shown or str(self.value)


def show(call: Call, data: object) -> None:
    """Print a structure in the form that ``--format`` asks for."""
    form = call.opts.format
    if form == "json":
        print(jsonio.format_pretty(_convert_pairs(data)))
    elif data:
        print(dump(data, formats.yaml_scalar if form == "yaml" else None), end="")


def _convert_pairs(data: object) -> object:
    """A structure with mappings in place of pairs."""
    pairs = _pairs(data)
    if pairs is not None:
        return {key: _convert_pairs(value) for key, value in pairs}
    if isinstance(data, list | tuple):
        return [_convert_pairs(item) for item in data]
    return data.value if isinstance(data, Flow) else data


def dump(data: object, exact: Callable[[object], str] | None = None) -> str:
    """The text of a structure, with a line break at its end.

    ``exact`` writes values that keep their type; without it they are Ganeti's text.
    """
    if exact is None:
        return "".join(_parts(data, 0, text, after_key=False))
    return "".join(_parts(_keys(data, exact), 0, lambda value, _: exact(value), after_key=False))


def _keys(data: object, exact: Callable[[object], str]) -> object:
    """A structure whose keys are written like its values, so that ``no`` or ``1`` stays a text."""
    pairs = _pairs(data)
    if pairs:
        return [(exact(key), _keys(value, exact)) for key, value in pairs]
    if isinstance(data, list | tuple):
        return [_keys(item, exact) for item in data]
    return data.value if isinstance(data, Flow) else data


def _parts(data: object, level: int, scalar: Scalar, *, after_key: bool) -> list[str]:
    pairs = _pairs(data)
    if isinstance(data, Mapping | list | tuple) and not data:
        return [scalar(data, level), "\n"]
    if pairs is not None:
        return _block(
            [
                [f"{key}: ", *_parts(value, level + 1, scalar, after_key=True)]
                for key, value in pairs
            ],
            level,
            after_key=after_key,
        )
    if isinstance(data, list | tuple):
        return _block(
            [["- ", *_parts(item, level + 1, scalar, after_key=False)] for item in data],
            level,
            after_key=after_key,
        )
    return [scalar(data, level), "\n"]


def _pairs(data: object) -> list[Pair] | None:
    if isinstance(data, Mapping):
        return sorted(data.items())
    if isinstance(data, list) and data and isinstance(data[0], tuple):
        return data
    return None


def _block(entries: Sequence[list[str]], level: int, *, after_key: bool) -> list[str]:
    result = ["\n"] if after_key else []
    for number, entry in enumerate(entries):
        if after_key or number:
            result.append(_INDENT * level)
        result += entry
    return result


def text(value: object, level: int = 0) -> str:
    """Text of a value; further lines of it are indented so that they stay part of it.

    A list or mapping that comes here is empty and has none.
    """
    shown = "" if isinstance(value, Mapping | list | tuple) else str(value)
    lines = shown.splitlines() or [""]
    if any(re.match(_NOT_PLAIN, line) for line in lines) or _ends_early(value, shown):
        return formats.yaml_scalar(shown)
    first, *rest = lines
    return "\n".join([first, *(f"{_INDENT * level}{line}" for line in rest)])


def _ends_early(value: object, shown: str) -> bool:
    """Whether brackets at the beginning do not begin a list or mapping of YAML."""
    if not shown.lstrip().startswith(_FLOW):
        return False
    return isinstance(value, str) or "\\'" in shown


def mark_defaults(actual: Mapping[str, object], own: Mapping[str, object]) -> JsonObject:
    """Values in force, those that are inherited as ``default (value)``; nested mappings too."""
    result: JsonObject = {}
    for key, value in actual.items():
        if isinstance(value, Mapping):
            inner = own.get(key)
            result[key] = mark_defaults(value, inner if isinstance(inner, Mapping) else {})
        else:
            result[key] = str(own[key]) if key in own else f"default ({value})"
    return result


def ipolicy(policy: Mapping[str, Any]) -> list[Pair]:
    """The instance policy of a cluster."""
    result: list[Pair] = [
        (
            "bounds specs",
            [
                [(f"{kind}/{number}", dict(specs.get(kind, {}))) for kind in ("max", "min")]
                for number, specs in enumerate(policy.get("minmax", []))
            ],
        ),
        ("std", dict(policy.get("std", {}))),
        ("allowed disk templates", ", ".join(policy.get("disk-templates", ()))),
    ]
    return result + [(key, policy.get(key)) for key in ("spindle-ratio", "vcpu-ratio")]
