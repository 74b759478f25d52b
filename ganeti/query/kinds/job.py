"""Jobs. Rows are job ids; everything else comes from the job files.

A job requested by its id and does not exist is a row without values. Archived jobs exist
only for queries that use the field ``archived``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ganeti.errors import GanetiError
from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Cell, Column
from ganeti.opcodes.hidden import REDACTED
from ganeti.query.field import UNAVAIL, Context, Kind, Task, optional
from ganeti.query.live import JobView, Need

TEXT, NUMBER, OTHER = FieldKind.TEXT, FieldKind.NUMBER, FieldKind.OTHER
Op = Mapping[str, Any]

_HIDDEN = frozenset({"osparams_private", "osparams_private_cluster", "osparams_secret"})


class JobKind(Kind[int]):
    name = "job"
    name_field = "id"

    def rows(self, ctx: Context) -> Sequence[int]:
        return sorted(ctx.sources.job_ids(Need.ARCHIVE in ctx.needs))

    def lookup(self, ctx: Context, names: Sequence[Any]) -> Sequence[int]:
        return [int(name) for name in names]

    def tasks(
        self, ctx: Context, needs: frozenset[Need], rows: Sequence[int]
    ) -> Mapping[Need, Task]:
        def load() -> Mapping[int, JobView]:
            views = ctx.sources.jobs(rows)
            if Need.ARCHIVE in needs:
                return views
            return {job_id: view for job_id, view in views.items() if not view.archived}

        return {Need.JOBS: load}

    def choose_rows(self, ctx: Context, rows: Sequence[int], named: bool) -> Sequence[int]:
        jobs = ctx.live.get(Need.JOBS)
        if named or jobs is None:
            return rows
        return [job_id for job_id in rows if job_id in jobs]


KIND = JobKind()


@KIND.field("id", "ID", NUMBER, "Number of the job", numeric_text=True)
def _id(_: Context) -> Column[int]:
    return lambda job_id: (0, job_id)


def _job_field(
    name: str,
    title: str,
    kind: FieldKind,
    doc: str,
    *,
    needs: Sequence[Need] = (Need.JOBS,),
    seconds: bool = False,
) -> Callable[[Callable[[JobView], object]], Callable[[JobView], object]]:
    """Decorator: the function returns the value of a job, None when it has none."""

    def register(function: Callable[[JobView], object]) -> Callable[[JobView], object]:
        def getter(ctx: Context) -> Column[int]:
            jobs: Mapping[int, JobView] = ctx.live[Need.JOBS]

            def column(job_id: int) -> Cell:
                job = jobs.get(job_id)
                return UNAVAIL if job is None else optional(function(job))

            return column

        KIND.field(name, title, kind, doc, needs=needs, seconds=seconds)(getter)
        return function

    return register


def _op_field(name: str, title: str, doc: str, key: str) -> None:
    """One value of each opcode of a job."""

    @_job_field(name, title, OTHER, doc)
    def _values(job: JobView) -> list[object]:
        return [getattr(op, key) for op in job.record.ops]


@_job_field("opstatus", "OpCode_status", OTHER, "State of each opcode")
def _statuses(job: JobView) -> list[str]:
    return [op.status.value for op in job.record.ops]


_op_field("opresult", "OpCode_result", "Result of each opcode", "result")
_op_field("oplog", "OpCode_log", "Messages of each opcode", "log")
_op_field("oppriority", "OpCode_prio", "Priority of each opcode", "priority")
_op_field("opstart", "OpCode_start", "When each opcode began to wait for locks", "start_timestamp")
_op_field("opexec", "OpCode_exec", "When each opcode had its locks", "exec_timestamp")
_op_field("opend", "OpCode_end", "When each opcode ended", "end_timestamp")


@_job_field(
    "archived",
    "Archived",
    FieldKind.BOOL,
    "Whether the job is in the archive, which is only then searched",
    needs=(Need.JOBS, Need.ARCHIVE),
)
def _is_archived(job: JobView) -> bool:
    return job.archived


@_job_field("received_ts", "Received", OTHER, "When the job was submitted", seconds=True)
def _get_received(job: JobView) -> object:
    return job.record.received_timestamp


@_job_field("start_ts", "Start", OTHER, "When the job was started", seconds=True)
def _start(job: JobView) -> object:
    return job.record.start_timestamp


@_job_field("end_ts", "End", OTHER, "When the job ended", seconds=True)
def _end(job: JobView) -> object:
    return job.record.end_timestamp


@_job_field("status", "Status", TEXT, "State of the job")
def _status(job: JobView) -> str:
    return job.record.status.value


@_job_field("user", "User", TEXT, "Who submitted the job")
def _user(job: JobView) -> str | None:
    submitter = job.record.submitter
    return None if submitter is None else submitter.shown


@_job_field("priority", "Priority", NUMBER, "Most urgent priority of the opcodes that are not done")
def _priority(job: JobView) -> int:
    return job.record.priority


@_job_field("summary", "Summary", OTHER, "Short text for each opcode")
def _summary(job: JobView) -> list[str]:
    return [op_summary(op.input) for op in job.record.ops]


def op_summary(raw: Op) -> str:
    """Short text of an opcode in its JSON form; the bare name when it cannot be understood."""
    from ganeti.opcodes import base, wire

    try:
        return base.summary(wire.from_wire(raw))
    except GanetiError:
        return str(raw.get("OP_ID", "")).removeprefix("OP_")


@_job_field("ops", "OpCodes", OTHER, "The opcodes, without private and secret values")
def _ops(job: JobView) -> list[object]:
    return [redact(op.input) for op in job.record.ops]


def redact(value: object) -> object:
    """A copy in which the values of private and secret OS parameters are hidden."""
    if isinstance(value, dict):
        return {key: _hide(item) if key in _HIDDEN else redact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [redact(item) for item in value]
    return value


def _hide(value: object) -> object:
    if isinstance(value, dict):
        return {key: _hide(item) for key, item in value.items()}
    return value if value is None else REDACTED
