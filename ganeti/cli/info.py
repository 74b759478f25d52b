"""The indented text of the info commands, which scripts read as YAML.

Pairs keep their order, mappings are sorted by key, list items begin with a dash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: An ordered mapping: ``("key", value)``; values are texts, pairs, mappings or lists of them.
Pair = tuple[str, Any]

_INDENT = "  "


def dump(data: Any) -> str:
    """The text of a structure, with a line break at its end."""
    return "".join(_parts(data, 0, after_key=False))


def _parts(data: Any, level: int, *, after_key: bool) -> list[str]:
    pairs = _pairs(data)
    if pairs is not None:
        return _block(
            [[f"{key}: ", *_parts(value, level + 1, after_key=True)] for key, value in pairs],
            level,
            after_key=after_key,
        )
    if isinstance(data, list | tuple):
        return _block(
            [["- ", *_parts(item, level + 1, after_key=False)] for item in data],
            level,
            after_key=after_key,
        )
    return [_scalar(data, level), "\n"]


def _pairs(data: Any) -> list[Pair] | None:
    if isinstance(data, Mapping):
        return sorted(data.items())
    if isinstance(data, list) and data and isinstance(data[0], tuple):
        return data
    return None


def _block(entries: Sequence[list[str]], level: int, *, after_key: bool) -> list[str]:
    if not entries:
        return ["\n"]
    result = ["\n"] if after_key else []
    for number, entry in enumerate(entries):
        if after_key or number:
            result.append(_INDENT * level)
        result += entry
    return result


def _scalar(value: Any, level: int) -> str:
    """Text of a value; further lines of it are indented so that they stay part of it."""
    first, *rest = str(value).splitlines() or [""]
    return "\n".join([first, *(f"{_INDENT * level}{line}" for line in rest)])


def filled(actual: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Values in force, those that are inherited as ``default (value)``; nested mappings too."""
    result: dict[str, Any] = {}
    for key, value in actual.items():
        if isinstance(value, Mapping):
            inner = own.get(key)
            result[key] = filled(value, inner if isinstance(inner, Mapping) else {})
        else:
            result[key] = str(own[key]) if key in own else f"default ({value})"
    return result


def ipolicy(policy: Mapping[str, Any]) -> list[Pair]:
    """The instance policy of a cluster."""
    result: list[Pair] = [
        (
            "bounds specs",
            [
                [(kind, dict(specs.get(kind, {}))) for kind in ("max", "min")]
                for specs in policy.get("minmax", [])
            ],
        ),
        ("std", dict(policy.get("std", {}))),
        ("allowed disk templates", ", ".join(policy.get("disk-templates", ()))),
    ]
    return result + [(key, policy.get(key)) for key in ("spindle-ratio", "vcpu-ratio")]
