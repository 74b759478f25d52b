"""Jobs: list, single job, cancel."""

from __future__ import annotations

from typing import Any

from ganeti.rapi import schemas
from ganeti.rapi.answers import Columns
from ganeti.rapi.reads import Collection
from ganeti.rapi.route import ANYBODY, BULK, Call, Ready, Route

BULK_FIELDS = ("id", "ops", "status", "summary", "opstatus", "received_ts", "start_ts", "end_ts")
FIELDS = (*BULK_FIELDS, "oplog", "opresult")
_JOBS = Collection(
    "/2/jobs", "job", "QueryJobs", "id", BULK_FIELDS, identifier="id", of_all=None, locks=False
)


def _list(call: Call) -> Any:
    if call.flag("bulk"):
        return _JOBS.list_all(call)
    rows = call.luxi.query_jobs(None, ["id"])
    ids = sorted(int(row[0]) for row in rows)
    return [{"id": number, "uri": f"/2/jobs/{number}"} for number in ids]


def _read_one(call: Call) -> Ready:
    """A job that does not exist has nulls besides its id, as clients know it."""
    number = int(call.path["job_id"])
    return Ready(Columns(FIELDS).objects(call.luxi.fetch("QueryJobs", [number], list(FIELDS)))[0])


def _cancel(call: Call) -> list[Any]:
    return list(call.luxi.cancel_job(int(call.path["job_id"])))


ROUTES = (
    Route(
        "GET",
        "/2/jobs",
        "List jobs",
        _list,
        access=ANYBODY,
        query=(BULK,),
        answer=schemas.listing(schemas.references("number"), schemas.record(BULK_FIELDS)),
    ),
    Route(
        "GET",
        "/2/jobs/{job_id}",
        "Show one job",
        _read_one,
        access=ANYBODY,
        answer=schemas.record(FIELDS),
    ),
    Route(
        "DELETE",
        "/2/jobs/{job_id}",
        "Cancel a job",
        _cancel,
        access=("write",),
        answer=schemas.DONE,
        statuses=(404,),
    ),
)
