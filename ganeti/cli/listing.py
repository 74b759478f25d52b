"""The list and list-fields commands: one query, one table.

Off a terminal the table is Ganeti's to the byte. On a terminal, and without ``--separator``, a
command may show more; what, is its :class:`OnTerminal`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ganeti import constants
from ganeti.base.record import Record
from ganeti.base.text import nearest
from ganeti.cli import formats, notices, output
from ganeti.cli.command import Call
from ganeti.filters import arguments
from ganeti.luxi.client import QueryResult

#: Value of ``-o`` for all columns.
ALL_FIELDS = "all"


class OnTerminal(Record):
    """Differences of a list command on a terminal.

    ``usual`` are the columns without ``-o``, ``needs`` further fields for ``arrange``, which
    gets them as the last columns and drops them.
    """

    usual: Sequence[str]
    needs: Sequence[str] = ()
    arrange: Callable[[QueryResult], QueryResult] = lambda result: result
    texts: Mapping[str, output.Format] = MappingProxyType({})


def choose_fields(
    text: str | None, usual: Sequence[str], known: Callable[[], list[str]]
) -> list[str]:
    """Fields of the option ``-o``: these, with a plus sign the usual ones and these, or all."""
    if text is None:
        return list(usual)
    if text == ALL_FIELDS:
        return known()
    if text.startswith("+"):
        return [*usual, *text[1:].split(",")]
    return text.split(",")


def is_for_person(call: Call) -> bool:
    """Whether a table is for a person: standard output is a terminal and nothing is separated."""
    opts = call.opts
    return (
        sys.stdout.isatty()
        and formats.choose(call) is None
        and getattr(opts, "separator", None) is None
    )


def show_list(
    call: Call,
    kind: str,
    usual: Sequence[str],
    *,
    texts: Mapping[str, output.Format] | None = None,
    name_field: str = "name",
    numeric: bool = False,
    condition: list[object] | None = None,
    extra_fields: Sequence[str] = (),
    on_terminal: OnTerminal | None = None,
    limit: int | None = None,
) -> int:
    """Print what a list command shows; unknown fields give exit code 14.

    ``condition`` is a filter that options asked for, ``extra_fields`` are added if missing,
    ``texts`` replace the usual text of some fields, ``limit`` leaves out all but the last rows.
    """
    opts = call.opts
    form, person = formats.choose(call), is_for_person(call)
    richer = on_terminal if person and on_terminal else OnTerminal(usual)
    fields = choose_fields(opts.output, richer.usual, lambda: _names(call, kind))
    fields += [name for name in extra_fields if name not in fields]
    qfilter = arguments.filter_of_arguments(
        call.args, name_field=name_field, numeric=numeric, force_filter=opts.force_filter
    )
    if condition is not None:
        qfilter = condition if qfilter is None else ["&", condition, qfilter]
    if limit:
        qfilter = _limit_rows(call, kind, [name_field, *extra_fields], qfilter, limit)
    result = call.client.query(kind, [*fields, *richer.needs], qfilter)
    unknown = [item.name for item in result.fields if item.kind == "unknown"]
    if unknown and person:
        notices.say(_describe_unknown_fields(call, kind, unknown))
        return constants.EXIT_UNKNOWN_FIELD
    if form is None:
        lines = output.query_table(
            richer.arrange(result),
            separator=opts.separator,
            headers=not opts.no_headers,
            unit=getattr(opts, "units", None),
            verbose=opts.verbose,
            formats={**(texts or {}), **richer.texts},
            colour=output.wants_colour(),
        )
    else:
        records = formats.make_records(result)
        lines = formats.lines(form, fields, records, headers=not opts.no_headers)
    output.print_lines(lines)
    return _warn_unknown(call, kind, unknown)


def _names(call: Call, kind: str) -> list[str]:
    return [item.name for item in call.client.query_fields(kind)]


def _limit_rows(call: Call, kind: str, fields: list[str], qfilter: object, limit: int) -> Any:
    """A filter of the last rows only, when there are more; says how many are left out."""
    names = [row[0][1] for row in call.client.query(kind, fields, qfilter).data]
    if len(names) <= limit:
        return qfilter
    notices.say(f"{len(names) - limit} older {kind}s are not shown; --limit 0 shows all")
    return any_of(fields[0], names[-limit:])


def show_fields(call: Call, kind: str) -> int:
    """Print which fields can be requested."""
    form, headers = formats.choose(call), not call.opts.no_headers
    fields = call.client.query_fields(kind, call.args or None)
    if form is None:
        lines = output.fields_table(fields, separator=call.opts.separator, headers=headers)
    else:
        keys = ("name", "title", "kind", "doc")
        records = [{key: getattr(item, key) for key in keys} for item in fields]
        lines = formats.lines(form, keys, records, headers=headers)
    output.print_lines(lines)
    return _warn_unknown(call, kind, [item.name for item in fields if item.kind == "unknown"])


def _add_hints(call: Call, kind: str, names: Sequence[str]) -> str:
    known = _names(call, kind)
    return ", ".join(f"{name}{nearest(name, known)}" for name in names)


def _describe_unknown_fields(call: Call, kind: str, names: Sequence[str]) -> str:
    noun = "field" if len(names) == 1 else "fields"
    hints = _add_hints(call, kind, names)
    return f"Unknown {kind} {noun} {hints}; {call.program} list-fields lists all"


def _warn_unknown(call: Call, kind: str, names: Sequence[str]) -> int:
    if not names:
        return constants.EXIT_SUCCESS
    notices.warn(f"Queried for unknown fields {_add_hints(call, kind, names)}")
    return constants.EXIT_UNKNOWN_FIELD


def any_of(field: str, wanted: Sequence[object]) -> list[Any]:
    """Filter: the field has one of these values."""
    return ["|", *(["==", field, value] for value in wanted)]
