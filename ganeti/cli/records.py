"""Lists of records that are not the answer to a query: a table, or a form for programs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.cli import formats, output
from ganeti.cli.command import Call

_MOMENTS = ("created", "expires", "last_sent")


def show(
    call: Call,
    names: Sequence[str],
    titles: Sequence[str],
    records: Sequence[JsonObject],
    *,
    right: Collection[str] = (),
) -> None:
    """Print records in the form that the options of the command ask for.

    ``names`` are the keys of the columns, ``right`` those of numbers.
    """
    form = formats.choose(call)
    headers = not call.opts.no_headers
    if form is not None:
        output.print_lines(formats.lines(form, names, records, headers=headers))
        return
    rows = [[_cell(name, record[name]) for name in names] for record in records]
    output.print_lines(
        output.table(
            titles,
            rows,
            right=[name in right for name in names],
            separator=call.opts.separator,
            headers=headers,
        )
    )


def _cell(name: str, item: Any) -> str:
    if name in _MOMENTS and item is not None:
        return output.timestamp(item)
    if isinstance(item, bool):
        return output.yes_no(item)
    if isinstance(item, dict):
        return ",".join(f"{key}={value}" for key, value in item.items())
    return output.join_items(item) if isinstance(item, list) else "-" if item is None else str(item)
