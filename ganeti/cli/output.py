"""Tables and values as text; the forms are part of the interface."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ganeti.base import units
from ganeti.luxi.client import FieldDef, QueryResult

#: Result status of a query -> short and long form of a missing value.
MISSING = {
    1: ("??", "(unknown)"),
    2: ("?", "(nodata)"),
    3: ("-", "(unavail)"),
    4: ("*", "(offline)"),
}
#: Names of kinds of fields in ``list-fields``.
KIND_WORDS = {
    "unknown": "Unknown",
    "text": "Text",
    "bool": "Boolean",
    "number": "Number",
    "float": "Floating-point number",
    "unit": "Storage size",
    "timestamp": "Timestamp",
    "other": "Custom",
}
_RIGHT = frozenset(("number", "float", "unit"))

#: Colours of missing values on a terminal: unknown and nodata red, unavail dim, offline yellow.
_COLOURS = {1: "31", 2: "31", 3: "2", 4: "33"}

Format = Callable[[Any], str]


class _Missing(str):
    """Text for a missing value, with the number of its colour."""

    __slots__ = ("colour",)
    colour: str

    @classmethod
    def from_status(cls, status: int, verbose: bool) -> _Missing:
        made = cls(MISSING.get(status, MISSING[1])[verbose])
        made.colour = _COLOURS.get(status, _COLOURS[1])
        return made


def wants_colour() -> bool:
    """Whether standard output is a terminal whose user has nothing against colours."""
    return (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "dumb") != "dumb"
    )


def timestamp(seconds: float | None) -> str:
    """``YYYY-MM-DD HH:MM:SS`` in local time; N/A when there is none."""
    if not seconds:
        return "N/A"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def stamp(value: Sequence[int] | None) -> str:
    """``[seconds, microseconds]`` with the microseconds; ``?`` when unusable, N/A when none."""
    if value is None:
        return "N/A"
    if not (isinstance(value, list | tuple) and len(value) == 2):
        return "?"
    return f"{timestamp(value[0])}.{value[1]:06d}"


def join_items(value: object) -> str:
    """Items of a list with commas between them."""
    return ",".join(str(item) for item in value) if isinstance(value, list | tuple) else str(value)


def yes_no(value: object) -> str:
    return "Y" if value else "N"


def _convert_to_text(value: object) -> str:
    return str(value)


def _formatter(kind: str, unit: str) -> Format:
    if kind == "bool":
        return yes_no
    if kind == "timestamp":
        return timestamp
    if kind == "unit":
        return lambda value: units.format_size(value, unit)
    return _convert_to_text


def cells(
    result: QueryResult, *, unit: str, verbose: bool, formats: Mapping[str, Format]
) -> list[list[str]]:
    """Texts of all values of a query."""
    columns = [formats.get(item.name) or _formatter(item.kind, unit) for item in result.fields]
    return [
        [
            form(value) if status == 0 else _Missing.from_status(status, verbose)
            for (status, value), form in zip(row, columns, strict=True)
        ]
        for row in result.data
    ]


def table(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[bool],
    separator: str | None = None,
    headers: bool = True,
    colour: bool = False,
) -> list[str]:
    """Lines of a table: aligned columns, or cells joined by ``separator`` as they are.

    A last column that is aligned to the left is not padded. With ``colour`` missing values of
    aligned columns stand out.
    """
    lines = [list(titles)] if headers else []
    lines += [list(row) for row in rows]
    if separator is not None:
        return [separator.join(line) for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if widths and not right[-1]:
        widths[-1] = 0
    paint = _paint if colour else _pad
    return [" ".join(map(paint, line, widths, right)) for line in lines]


def _pad(cell: str, width: int, to_right: bool) -> str:
    return cell.rjust(width) if to_right else cell.ljust(width)


def _paint(cell: str, width: int, to_right: bool) -> str:
    text = _pad(cell, width, to_right)
    return f"\x1b[{cell.colour}m{text}\x1b[0m" if isinstance(cell, _Missing) else text


def query_table(
    result: QueryResult,
    *,
    separator: str | None = None,
    headers: bool = True,
    unit: str | None = None,
    verbose: bool = False,
    formats: Mapping[str, Format] | None = None,
    colour: bool = False,
) -> list[str]:
    """Lines of the table of a query; ``formats`` replace the usual form of some fields.

    Sizes have units of their own (``h``), or are in MiB when a separator is given.
    """
    return table(
        [item.title for item in result.fields],
        cells(
            result,
            unit=unit or ("h" if separator is None else "m"),
            verbose=verbose,
            formats=formats or {},
        ),
        right=[item.kind in _RIGHT for item in result.fields],
        separator=separator,
        headers=headers,
        colour=colour,
    )


def fields_table(
    fields: Sequence[FieldDef], *, separator: str | None = None, headers: bool = True
) -> list[str]:
    """Lines of the table that describes fields."""
    return table(
        ("Name", "Type", "Title", "Description"),
        [
            (item.name, KIND_WORDS.get(item.kind, item.kind), item.title, item.doc)
            for item in fields
        ],
        right=(False,) * 4,
        separator=separator,
        headers=headers,
    )


def fixed_table(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[object]],
    *,
    separator: str | None = None,
    headers: bool = True,
    unit: str | None = None,
) -> list[str]:
    """Lines of a table of bare values; ``columns`` are titles and kinds, null shows as ``-``."""
    chosen = unit or ("h" if separator is None else "m")
    forms = [_formatter(kind, chosen) for _, kind in columns]
    return table(
        [title for title, _ in columns],
        [
            ["-" if cell is None else form(cell) for cell, form in zip(row, forms, strict=True)]
            for row in rows
        ],
        right=[kind in _RIGHT for _, kind in columns],
        separator=separator,
        headers=headers,
    )


def print_lines(lines: Sequence[str]) -> None:
    """Write lines to standard output, in one go."""
    if lines:
        print("\n".join(lines))


def print_changes(kind: str, name: str, rows: Any) -> None:
    """Print the changes of a modification: ``[[setting, new value], ...]``; nothing for none."""
    if rows:
        print(f"Modified {kind} {name}")
        print_lines([f" - {setting} -> {new}" for setting, new in rows])
