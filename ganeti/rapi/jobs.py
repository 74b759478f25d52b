"""Jobs: list, single job, why it waits, priority, cancel."""

from __future__ import annotations

from ganeti.base.json_types import JsonObject
from ganeti.rapi import failures, schemas
from ganeti.rapi.answers import Columns
from ganeti.rapi.reads import Collection
from ganeti.rapi.route import ANYBODY, BULK, Call, Ready, Route

BULK_FIELDS = ("id", "ops", "status", "summary", "opstatus", "received_ts", "start_ts", "end_ts")
FIELDS = (*BULK_FIELDS, "oplog", "opresult")
_JOBS = Collection(
    "/2/jobs", "job", "QueryJobs", "id", BULK_FIELDS, identifier="id", of_all=None, locks=False
)


def _list(call: Call) -> object:
    if call.flag("bulk"):
        return _JOBS.list_all(call)
    rows = call.luxi.query_jobs(None, ["id"])
    ids = sorted(int(row[0]) for row in rows)
    return [{"id": number, "uri": f"/2/jobs/{number}"} for number in ids]


def _read_one(call: Call) -> Ready:
    """A job that does not exist has nulls besides its id, as clients know it."""
    number = int(call.path["job_id"])
    return Ready(Columns(FIELDS).objects(call.luxi.fetch("QueryJobs", [number], list(FIELDS)))[0])


def _cancel(call: Call) -> list[object]:
    return list(call.luxi.cancel_job(int(call.path["job_id"])))


def _explain(call: Call) -> JsonObject:
    return call.luxi.explain_job(int(call.path["job_id"]))


def _change_priority(call: Call) -> list[object]:
    given = call.body.get("priority") if isinstance(call.body, dict) else None
    if isinstance(given, bool) or not isinstance(given, int) or len(call.body) > 1:
        raise failures.make_bad_request("The body must be an object with a number 'priority' only")
    return list(call.luxi.change_job_priority(int(call.path["job_id"]), given))


_PRIORITY = {
    "type": "object",
    "required": ["priority"],
    "properties": {
        "priority": {
            "type": "integer",
            "minimum": -20,
            "maximum": 19,
            "description": "Place in the queue: -20 first, 0 normal, 19 last",
        }
    },
    "additionalProperties": False,
}
_EXPLANATION = {
    "type": "object",
    "required": ["id", "status", "summary", "age", "text", "waits_for", "chain"],
    "properties": {
        "id": schemas.INTEGER,
        "status": schemas.TEXT,
        "summary": schemas.TEXT,
        "age": {"type": "number", "description": "Seconds in this state"},
        "text": schemas.TEXT,
        "waits_for": {"type": ["object", "null"], "description": "kind, text, release, jobs"},
        "chain": {
            "type": "array",
            "items": schemas.OBJECT,
            "description": "The same of the jobs that it waits for, and of those they wait for",
        },
    },
}

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
    Route(
        "GET",
        "/2/jobs/{job_id}/why",
        "Explain why a job waits: for what, who holds it, what would release it",
        _explain,
        access=("read", "write"),
        answer=_EXPLANATION,
        statuses=(404,),
    ),
    Route(
        "PUT",
        "/2/jobs/{job_id}/priority",
        "Change the priority of a job that has not ended",
        _change_priority,
        access=("write",),
        body=lambda: _PRIORITY,
        body_required=True,
        answer=schemas.DONE,
        statuses=(404,),
    ),
)
