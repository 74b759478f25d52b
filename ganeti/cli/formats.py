"""Lists for programs: JSON, YAML or CSV with the names of fields and the master's own values.

Every value is what the master sent: sizes in MiB, times in seconds, nothing rounded. A value that
is missing is null (CSV: empty). In JSON and YAML an object with missing values has one more
key, ``Missing``, that tells why: field -> unknown, nodata, unavail or offline. No field can have
that name, as names of fields have no capital letters. These forms are part of the interface.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ganeti import errors
from ganeti.base import jsonio
from ganeti.base.json_types import JsonObject
from ganeti.cli.command import Call
from ganeti.luxi.client import QueryResult

TABLE = "table"
#: Key of the object that tells why values are missing.
MISSING_KEY = "Missing"
#: Result status of a query -> word.
REASONS = {1: "unknown", 2: "nodata", 3: "unavail", 4: "offline"}


_PLAIN_KEY = r"[A-Za-z][A-Za-z0-9._/]*"
_ESCAPES = r"\\\\|\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})"


def choose(call: Call) -> str | None:
    """The form that was requested, None for the usual table.

    Raises:
        OpPrereqError: options that make sense for tables only.
    """
    form: str = call.opts.format
    if form == TABLE:
        return None
    for name in ("separator", "units"):
        if getattr(call.opts, name, None) is not None:
            raise errors.make_invalid_error(f"--{name} is for tables, not for --format {form}")
    return form


def make_records(result: QueryResult) -> list[JsonObject]:
    """One object for each row of a query."""
    names = [item.name for item in result.fields]
    found = []
    for row in result.data:
        record = {name: value for name, (_, value) in zip(names, row, strict=True)}
        missing = {
            name: REASONS.get(status, REASONS[1])
            for name, (status, _) in zip(names, row, strict=True)
            if status
        }
        if missing:
            record[MISSING_KEY] = missing
        found.append(record)
    return found


def lines(
    form: str, names: Sequence[str], records: Sequence[JsonObject], *, headers: bool = True
) -> list[str]:
    """Lines of the text; ``names`` are the columns of CSV, which has a title line of them."""
    if form == "json":
        return _json(records)
    if form == "yaml":
        return _yaml(records)
    return _csv(list(dict.fromkeys(names)), records, headers)


def _json(records: Sequence[JsonObject]) -> list[str]:
    """A list with one object on each line."""
    if not records:
        return ["[]"]
    texts = [f" {jsonio.dumps(record)}" for record in records]
    return ["[", *(f"{text}," for text in texts[:-1]), texts[-1], "]"]


def _yaml(records: Sequence[JsonObject]) -> list[str]:
    """A list of mappings whose values are written as JSON, which every YAML reader takes."""
    if not records:
        return ["[]"]
    return [
        f"{'- ' if first else '  '}{_key(name)}: {yaml_scalar(value)}"
        for record in records
        for first, (name, value) in zip(_yield_true_once(), record.items(), strict=False)
    ]


def _yield_true_once() -> Iterable[bool]:
    yield True
    while True:
        yield False


def _key(name: str) -> str:
    return name if re.fullmatch(_PLAIN_KEY, name) else yaml_scalar(name)


def yaml_scalar(value: object) -> str:
    """JSON text with the escapes of YAML, which knows no surrogate pairs."""
    return re.sub(_ESCAPES, _escape, jsonio.dumps(value))


def _escape(found: re.Match[str]) -> str:
    if found[1] is None:
        return found[0]
    number = 0x10000 + ((int(found[1], 16) - 0xD800) << 10) + int(found[2], 16) - 0xDC00
    return f"\\U{number:08x}"


def _csv(names: Sequence[str], records: Sequence[JsonObject], headers: bool) -> list[str]:
    """RFC 4180 but for the ends of lines; lists and objects are JSON texts in one cell."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if headers:
        writer.writerow(names)
    writer.writerows([_cell(record.get(name)) for name in names] for record in records)
    return text.getvalue().removesuffix("\n").split("\n") if text.tell() else []


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else jsonio.dumps(value)
