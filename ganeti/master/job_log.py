"""The log lines of all daemons about one job, collected from the nodes."""

from __future__ import annotations

from collections.abc import Sequence

from ganeti import errors
from ganeti.base import clock
from ganeti.base.json_types import JsonObject
from ganeti.jobs.queue import JobQueue
from ganeti.master.core import Core
from ganeti.rpc.calls import NodeCalls

#: Seconds for the answer of a node.
_PATIENCE = 30.0


def query(core: Core, job: int, names: Sequence[str]) -> JsonObject:
    """Lines of the named nodes, or of all, by time.

    ``{"lines": [[time, node, program, level, text]], "failed": {node: why it told nothing},
    "cut": [nodes whose older lines are left out]}``.

    Raises:
        JobLost: nobody knows of the job.
        OpPrereqError: there is no such node.
    """
    config = core.store.current
    nodes = [config.node(name) for name in names] or list(config.nodes.values())
    since = _submitted_at(core.queue, job)
    answers = core.rpc.limit_time(_PATIENCE).call_many(nodes, NodeCalls.job_log, job, since or 0.0)
    lines: list[list[object]] = []
    failed: dict[str, str] = {}
    cut = []
    for answer in answers.values():
        name = answer.node.name
        if answer.error is not None:
            failed[name] = errors.text(answer.error)
            continue
        found = answer.get()
        lines += [[line.time, name, line.program, line.level, line.text] for line in found.lines]
        if found.cut:
            cut.append(name)
    if since is None and not lines:
        raise errors.JobLost(f"Job {job} is not known, and no log has a line about it")
    return {"lines": sorted(lines, key=lambda line: line[0]), "failed": failed, "cut": sorted(cut)}


def _submitted_at(queue: JobQueue, job: int) -> float | None:
    """When a job was submitted, None when it is not in the queue nor in the archive."""
    try:
        stamp = queue.view(lambda record: record.received_timestamp, job)
    except errors.JobLost:
        record = queue.read_archived(job)
        stamp = None if record is None else record.received_timestamp
    return clock.merge(stamp)
