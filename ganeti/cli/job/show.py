"""gnt-job: what jobs there are, and everything about one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ganeti import errors
from ganeti.base import units
from ganeti.base.json_types import JsonObject
from ganeti.cli import info, listing, notices, output
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many
from ganeti.cli.option import switch, value
from ganeti.cli.programs import JOB
from ganeti.luxi.client import FieldDef, LogEntry, QueryResult

LIST_FIELDS = ("id", "status", "summary")
_TIMES = ("received_ts", "start_ts", "end_ts")
#: Jobs that are listed on a terminal.
_NEWEST = 50
#: Value in the summary of OP_TEST_DELAY.
_NANOSECONDS = re.compile(r"\b([0-9]+) ns\b")

_ARCHIVED = switch("--archived", dest="archived", help="Archived jobs too")
_LIMIT = value(
    "--limit",
    dest="limit",
    kind="int",
    metavar="<number>",
    group="Selection",
    help="Only the newest jobs; 0 is all of them",
)


def job_id(text: str) -> int:
    """The number of a job.

    Raises:
        OpPrereqError: no number.
    """
    if not (text.isascii() and text.isdigit()):
        raise errors.make_invalid_error(f"'{text}' is not a job ID: expected a number")
    return int(text)


@JOB.command(
    "list",
    take_many("job-id"),
    options=(
        o.NO_HEADERS,
        o.SEPARATOR,
        o.FIELDS,
        o.VERBOSE,
        o.FILTER,
        o.FORMAT,
        _LIMIT,
        o.PENDING,
        o.RUNNING,
        o.ERROR,
        o.FINISHED,
        _ARCHIVED,
    ),
)
def list_jobs(call: Call) -> int:
    """List jobs, the newest last.

    Arguments are job ids, or one filter such as 'status == "error"'. On a terminal the newest 50
    are shown, with user, age, duration and, with --error, the error.
    """
    opts = call.opts
    wanted = opts.status_filter
    limit = opts.limit
    if limit is None and listing.is_for_person(call) and not call.args:
        limit = _NEWEST
    if limit is not None and limit < 0:
        raise errors.make_invalid_error(
            f"--limit {limit}: expected 0 (all jobs) or a positive number"
        )
    return listing.show_list(
        call,
        "job",
        LIST_FIELDS,
        texts={
            "summary": output.join_items,
            "opstart": _stamps,
            "opexec": _stamps,
            "opend": _stamps,
        },
        name_field="id",
        numeric=True,
        condition=listing.any_of("status", wanted) if wanted else None,
        extra_fields=("archived",) if opts.archived else (),
        on_terminal=_format_for_person(call, failed=wanted == ("error",)),
        limit=limit,
    )


def _format_for_person(call: Call, *, failed: bool) -> listing.OnTerminal:
    texts = {**dict.fromkeys(_TIMES, output.stamp), "summary": _summary}
    if call.opts.output is not None:
        return listing.OnTerminal(LIST_FIELDS, texts=texts)
    needs = [*_TIMES, *(["opresult"] if failed else [])]
    usual = ("id", "status", "user", "summary")
    return listing.OnTerminal(
        usual, needs, lambda found: _add_times(found, failed, call.clock.now()), texts
    )


def _add_times(result: QueryResult, failed: bool, now: float) -> QueryResult:
    """Age and duration after the user, and at the end the error, in place of what they are of."""
    fields, archived = result.fields[:4], result.fields[4 : -4 if failed else -3]
    rows = []
    for row in result.data:
        job, times = row[:4], [value for _status, value in row[4 + len(archived) :]]
        age, duration = _spans(times[:3], now)
        end = [(0, _first_error(times[3]))] if failed else []
        rows.append([*job[:3], (0, age), (0, duration), job[3], *row[4 : 4 + len(archived)], *end])
    spans = [FieldDef("age", "Age", "text"), FieldDef("duration", "Duration", "text")]
    error = [FieldDef("error", "Error", "text")] if failed else []
    return QueryResult([*fields[:3], *spans, fields[3], *archived, *error], rows)


def _spans(times: Sequence[Any], now: float) -> tuple[str, str]:
    """How long ago a job came, and how long it has worked."""
    received, started, ended = times
    age = units.format_duration(now - _seconds(received)) if received else "-"
    if not started:
        return age, "-"
    return age, units.format_duration((_seconds(ended) if ended else now) - _seconds(started))


def _first_error(results: Any) -> str:
    """First line of the error of the opcode that failed."""
    for result in results or ():
        err = errors.decode(result)
        if err is not None:
            return (errors.text(err).splitlines() or [""])[0]
    return "-"


def _summary(value: object) -> str:
    """Summaries of opcodes; nanoseconds as people write a time."""
    return _NANOSECONDS.sub(
        lambda found: units.format_duration(int(found[1]) / 1e9), output.join_items(value)
    )


def _stamps(value: Any) -> str:
    return str([output.stamp(item) for item in value])


@JOB.command("list-fields", take_many("field"), options=o.LIST_FIELDS_OPTIONS)
def list_fields(call: Call) -> int:
    """List the fields that gnt-job list can show."""
    return listing.show_fields(call, "job")


@JOB.command("info", take_many("job-id", least=1), aliases=("show",), options=(o.INFO_FORMAT,))
def show_info(call: Call) -> None:
    """Show everything about jobs: times, opcodes with parameters, results and logs."""
    fields = [
        "id",
        "status",
        "ops",
        "opresult",
        "opstatus",
        "oplog",
        "opstart",
        "opexec",
        "opend",
        "received_ts",
        "start_ts",
        "end_ts",
        "archived",
    ]
    known = []
    for row in call.client.query_jobs([job_id(arg) for arg in call.args], fields):
        if row[1] is None:
            say = print if call.opts.format == "text" else notices.say
            say(f"Job ID {row[0]} not found")
        else:
            known.append(_job_info(dict(zip(fields, row, strict=True))))
    info.show(call, known)


def _job_info(job: JsonObject) -> list[info.Pair]:
    received, started, ended = job["received_ts"], job["start_ts"], job["end_ts"]
    total = f"{_seconds(ended) - _seconds(received):.6f} seconds" if ended and received else "N/A"
    opcodes = zip(
        job["ops"],
        job["opstatus"],
        job["opresult"],
        job["oplog"],
        job["opstart"],
        job["opexec"],
        job["opend"],
        strict=True,
    )
    return [
        ("Job ID", job["id"]),
        ("Status", f"{job['status']} (archived)" if job["archived"] else job["status"]),
        ("Received", output.stamp(received)),
        ("Processing start", _moment(started, received)),
        ("Processing end", _moment(ended, started)),
        ("Total processing time", total),
        ("Opcodes", [_opcode_info(*opcode) for opcode in opcodes]),
    ]


def _moment(when: list[int] | None, before: list[int] | None) -> str:
    if not when:
        return "N/A"
    delta = f" (delta {_seconds(when) - _seconds(before):.6f}s)" if before else ""
    return f"{output.stamp(when)}{delta}"


def _seconds(stamp: list[int]) -> float:
    return stamp[0] + stamp[1] / 1_000_000


def _opcode_info(
    op: JsonObject,
    status: str,
    result: object,
    log: Iterable[LogEntry],
    start: Any,
    execution: Any,
    end: Any,
) -> list[info.Pair]:
    inputs = {key: value for key, value in op.items() if key != "OP_ID"}
    return [
        (
            str(op.get("OP_ID")),
            [
                ("Status", status),
                ("Processing start", output.stamp(start)),
                ("Execution start", output.stamp(execution)),
                ("Processing end", output.stamp(end)),
                ("Input fields", {key: _join_lines(value) for key, value in inputs.items()}),
                ("Result", _join_lines(result)),
                (
                    "Execution log",
                    [
                        [(str(entry[0]), f"{output.stamp(entry[1])} {entry[3]}")]
                        for entry in log or ()
                    ],
                ),
            ],
        )
    ]


def _join_lines(value: object) -> object:
    if not isinstance(value, list | dict):
        return value
    return info.Flow(value, ",".join(map(str, value)) if _is_flat(value) else "")


def _is_flat(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and not any(isinstance(item, list | dict) for item in value)
    )
