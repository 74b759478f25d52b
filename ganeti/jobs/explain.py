"""Explains why a job waits: what for, which jobs hold it, what would release it.

The explanation comes from the data that the scheduler decides with. So when the named jobs end,
the job continues. It is an object::

    {"id": 12, "status": "waiting", "summary": "...", "age": 41.2, "text": "one sentence",
     "waits_for": null or {
         "kind": "lock" | "job" | "filter" | "worker",
         "text": "...", "release": "what would let it go on",
         "age": 41.0, "jobs": [7],
         "locks": [{"lock": "node/uuid", "title": "node/name", "mode": "exclusive",
                    "held_by": [[7, "exclusive"]], "ahead": [9], "place": 2}],  # kind lock
         "rule": "uuid",                              # kind filter
         "ahead": 3},                                 # kind worker
     "chain": [one such object, without "chain", for each job that this one waits for, for each
               job that those wait for, and so on]}

Ages are in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ganeti import errors
from ganeti.base import clock as clock_module
from ganeti.base.clock import Clock
from ganeti.base.json_types import JsonObject
from ganeti.base.units import format_duration
from ganeti.jobs.job import Book, Job
from ganeti.jobs.workers import WorkerPool
from ganeti.locking.manager import LockManager
from ganeti.locking.views import Obstacle, WaitView
from ganeti.model.job_status import JobStatus
from ganeti.opcodes import wire
from ganeti.opcodes.base import summary

Explanation = JsonObject
#: A lock as people know it, of its name.
Title = Callable[[str], str]

#: Most jobs in a chain.
MAX_CHAIN = 50


def explain(
    book: Book,
    locks: LockManager,
    pool: WorkerPool[Job],
    clock: Clock,
    job_id: int,
    title: Title = str,
) -> Explanation:
    """The explanation of a job, with those of the jobs it waits for.

    Raises:
        JobLost: there is no such live job.
    """
    seen: dict[int, Explanation] = {}
    todo = [job_id]
    while todo and len(seen) <= MAX_CHAIN:
        current = todo.pop(0)
        if current in seen:
            continue
        found = _explain_one(book, locks, pool, clock, current, title)
        if found is None:
            if current == job_id:
                raise errors.JobLost(f"job {job_id} does not exist or is archived")
            continue
        seen[current] = found
        todo += (found["waits_for"] or {}).get("jobs", [])
    first, *chain = seen.values()
    return {**first, "chain": chain}


def _explain_one(
    book: Book,
    locks: LockManager,
    pool: WorkerPool[Job],
    clock: Clock,
    job_id: int,
    title: Title,
) -> Explanation | None:
    with book.mutex:
        job = book.jobs.get(job_id)
        if job is None:
            return None
        record, now = job.record, clock.now()
        index = record.current()
        op = record.ops[-1 if index is None else index] if record.ops else None
        begun = op and (op.exec_timestamp or op.start_timestamp)
        since = clock_module.merge(begun or record.received_timestamp)
        facts: Explanation = {
            "id": job_id,
            "status": str(record.status),
            "summary": ",".join(summary(wire.from_wire(o.input)) for o in record.ops),
            "age": max(0.0, now - since) if since is not None else 0.0,
            "step": op.log[-1][3] if op and op.log else None,
        }
        hold, request = job.hold, job.request
        waits: Explanation | None = None
        if record.status is JobStatus.QUEUED and hold is not None:
            waits = {
                "kind": "job" if hold.rule is None else "filter",
                "text": hold.text,
                "jobs": list(hold.jobs),
                "rule": hold.rule,
                "age": facts["age"],
                "release": _release_of_hold(hold.rule, hold.jobs),
            }
    if waits is None and request is not None:
        view = locks.explain(job_id)
        waits = _lock_wait(view, title) if view is not None else None
    if waits is None and facts["status"] in ("queued", "waiting"):
        waits = _worker_wait(book, pool, job, facts["age"])
    return {**facts, "waits_for": waits, "text": _sentence(facts, waits)}


def _release_of_hold(rule: str | None, jobs: Iterable[int]) -> str:
    ends = " and ".join(f"the end of job {number}" for number in jobs)
    if rule is None:
        return ends
    change = f"gnt-filter delete {rule}, or another rule before it"
    return f"{ends}, or {change}" if ends else change


def _lock_wait(view: WaitView, title: Title) -> Explanation:
    holders = [owner for item in view.obstacles for owner, _mode in item.holders]
    ahead = [owner for item in view.obstacles for owner in item.ahead]
    jobs = list(dict.fromkeys(owner for owner in (*holders, *ahead) if isinstance(owner, int)))
    return {
        "kind": "lock",
        "text": "; ".join(_obstacle_text(item, title) for item in view.obstacles)
        or "locks that are just being released",
        "age": view.age,
        "jobs": jobs,
        "locks": [
            {
                "lock": item.lock,
                "title": title(item.lock),
                "mode": item.mode,
                "held_by": [list(holder) for holder in item.holders],
                "ahead": list(item.ahead),
                "place": len(item.ahead) + 1,
            }
            for item in view.obstacles
        ],
        "release": " and ".join(f"the end of job {number}" for number in jobs),
    }


def _obstacle_text(item: Obstacle, title: Title) -> str:
    text = f"the lock {title(item.lock)} ({item.mode}), place {len(item.ahead) + 1} in line"
    if item.holders:
        text += f", held by {_jobs(owner for owner, _mode in item.holders)}"
    if item.ahead:
        text += f", wanted before by {_jobs(item.ahead)}"
    return text


def _jobs(owners: Iterable[object]) -> str:
    return "job " + ", ".join(map(str, owners))


def _worker_wait(book: Book, pool: WorkerPool[Job], job: Job, age: float) -> Explanation | None:
    ahead = pool.count_ahead(job)
    if ahead is None:
        return None
    with book.mutex:
        running = [j.id for j in book.jobs.values() if j.status is JobStatus.RUNNING]
    return {
        "kind": "worker",
        "text": f"a free worker; all {pool.size} are busy, {ahead} jobs are before it",
        "age": age,
        "ahead": ahead,
        "jobs": running,
        "release": "the end of any running job, or a higher priority",
    }


def _sentence(facts: Explanation, waits: Explanation | None) -> str:
    head, age = f"job {facts['id']}, {facts['summary']},", format_duration(facts["age"])
    if facts["status"] in ("success", "error", "canceled"):
        return f"{head} has ended with {facts['status']}"
    if waits is None:
        return f"{head} has been {facts['status']} for {age}"
    if waits["kind"] == "filter":
        return f"{head} has been held for {age}: {waits['text']}"
    return f"{head} has waited {format_duration(waits['age'])} for {waits['text']}"
