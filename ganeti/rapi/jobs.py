"""Jobs: list, single job, cancel."""

from __future__ import annotations

from typing import Any

from ganeti.rapi import schemas
from ganeti.rapi.answers import Columns
from ganeti.rapi.reads import Collection
from ganeti.rapi.route import BULK, Call, Ready, Route

_BULK = ("id", "ops", "status", "summary", "opstatus", "received_ts", "start_ts", "end_ts")
_ALL = (*_BULK, "oplog", "opresult")
_JOBS = Collection(
    "/2/jobs", "job", "QueryJobs", "id", _BULK, identifier="id", of_all=None, locks=False
)


def _list(call: Call) -> Any:
    if call.flag("bulk"):
        return _JOBS.list_all(call)
    rows = call.luxi.query_jobs(None, ["id"])
    ids = sorted(int(row[0]) for row in rows)
    return [{"id": number, "uri": f"/2/jobs/{number}"} for number in ids]


def _one(call: Call) -> Ready:
    """A job that does not exist has nulls besides its id, as clients know it."""
    number = int(call.path["job_id"])
    return Ready(Columns(_ALL).objects(call.luxi.fetch("QueryJobs", [number], list(_ALL)))[0])


def _cancel(call: Call) -> list[Any]:
    return list(call.luxi.cancel_job(int(call.path["job_id"])))


ROUTES = (
    Route("GET", "/2/jobs", "List jobs", _list, query=(BULK,),
          answer=schemas.listing(schemas.references("number"), schemas.record(_BULK))),
    Route("GET", "/2/jobs/{job_id}", "Show one job", _one, answer=schemas.record(_ALL)),
    Route("DELETE", "/2/jobs/{job_id}", "Cancel a job", _cancel, access=("write",),
          answer=schemas.DONE, statuses=(404,)),
)  # fmt: skip
