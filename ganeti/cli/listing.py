"""The list and list-fields commands: one query, one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ganeti import constants
from ganeti.cli import formats, notices, output
from ganeti.cli.command import Call
from ganeti.filters import arguments


def chosen_fields(text: str | None, usual: Sequence[str]) -> list[str]:
    """Fields of the option ``-o``: these, or with a plus sign the usual ones and these."""
    if text is None:
        return list(usual)
    if text.startswith("+"):
        return [*usual, *text[1:].split(",")]
    return text.split(",")


def show_list(
    call: Call,
    kind: str,
    usual: Sequence[str],
    *,
    texts: Mapping[str, output.Format] | None = None,
    name_field: str = "name",
    numeric: bool = False,
    condition: list[Any] | None = None,
    extra_fields: Sequence[str] = (),
) -> int:
    """Print what a list command shows; unknown fields give exit code 14.

    ``condition`` is a filter that options asked for, ``extra_fields`` are added if missing,
    and ``texts`` replace the usual text of some fields.
    """
    opts = call.opts
    form = formats.wanted(call)
    fields = chosen_fields(opts.output, usual)
    fields += [name for name in extra_fields if name not in fields]
    qfilter = arguments.filter_of_arguments(
        call.args, name_field=name_field, numeric=numeric, force_filter=opts.force_filter
    )
    if condition is not None:
        qfilter = condition if qfilter is None else ["&", condition, qfilter]
    result = call.client.query(kind, fields, qfilter)
    if form is None:
        lines = output.query_table(
            result,
            separator=opts.separator,
            headers=not opts.no_headers,
            unit=getattr(opts, "units", None),
            verbose=opts.verbose,
            formats=texts,
            colour=output.colour_wanted(),
        )
    else:
        records = formats.of_query(result)
        lines = formats.lines(form, fields, records, headers=not opts.no_headers)
    output.print_lines(lines)
    return _warn_unknown([item.name for item in result.fields if item.kind == "unknown"])


def show_fields(call: Call, kind: str) -> int:
    """Print which fields can be asked for."""
    form, headers = formats.wanted(call), not call.opts.no_headers
    fields = call.client.query_fields(kind, call.args or None)
    if form is None:
        lines = output.fields_table(fields, separator=call.opts.separator, headers=headers)
    else:
        keys = ("name", "title", "kind", "doc")
        records = [{key: getattr(item, key) for key in keys} for item in fields]
        lines = formats.lines(form, keys, records, headers=headers)
    output.print_lines(lines)
    return _warn_unknown([item.name for item in fields if item.kind == "unknown"])


def _warn_unknown(names: Sequence[str]) -> int:
    if not names:
        return constants.EXIT_SUCCESS
    notices.warn(f"Queried for unknown fields {', '.join(names)}")
    return constants.EXIT_UNKNOWN_FIELD


def any_of(field: str, wanted: Sequence[Any]) -> list[Any]:
    """Filter: the field has one of these values."""
    return ["|", *(["==", field, value] for value in wanted)]
