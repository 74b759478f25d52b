"""Carry out a plan: submit its sets of jobs one after the other and wait for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ganeti.base.clock import SYSTEM, nanoseconds
from ganeti.base.interruption import stop_requests
from ganeti.base.json_types import JsonObject
from ganeti.htools import plan
from ganeti.htools.options import UsageError, Values
from ganeti.htools.program import say, warn
from ganeti.luxi.client import Client
from ganeti.placement.balance import Step

#: Numbers of the priorities of jobs, by name.
_PRIORITIES = {"low": 10, "normal": 0, "high": -10}


@dataclass(frozen=True, slots=True)
class Job:
    """Opcodes, and where they expect an instance to be: name, primary and secondary node."""

    opcodes: list[JsonObject]
    expects: tuple[str, str, str] | None = None


def jobs_of(steps: Sequence[Step]) -> list[list[Job]]:
    """The jobs of a plan, set by set."""
    return [[_job(step) for step in one] for one in plan.sets(steps)]


def _job(step: Step) -> Job:
    index = step.move.instance
    name = step.before.board.instances[index].name
    return Job(plan.opcodes(step), (name, *step.before.place(index)))


def client_of(values: Values) -> Client:
    """A connection to the master daemon that ``-L`` names."""
    socket = values.get("luxi")
    return Client(Path(socket) if socket else None)


def check_source(values: Values) -> None:
    """Jobs go to where the cluster was read."""
    if "exec" in values and "luxi" not in values:
        raise UsageError("-X (--exec) submits jobs to the master daemon; it needs -L")


def carry_out(sets: Sequence[Sequence[Job]], values: Values, asker: str, usual: str) -> int:
    """Submit set by set; after SIGTERM or SIGINT no further set. Returns the exit code.

    A set whose jobs did not all succeed ends the plan, as does an instance that is not where the
    plan left it: what follows counted on them. ``asker`` and ``usual`` are what the jobs give for
    a reason.
    """
    with (
        stop_requests(lambda: warn("Stopping after the jobs that run now.")) as asked,
        client_of(values) as client,
    ):
        wanted = sets[:1] if "first_job_group" in values else sets
        for number, jobs in enumerate(wanted, 1):
            if asked:
                say(f"Stopped before set {number} of {len(wanted)}.")
                return 0
            if not _run_set(client, jobs, add_reason(values, asker, usual)):
                return 1
    say("All jobs completed successfully.")
    return 0


def add_reason(values: Values, asker: str, usual: str) -> JsonObject:
    """The common fields of every opcode: priority and reason of the command line."""
    reason = [[asker, values.get("reason") or usual, nanoseconds(SYSTEM.now())]]
    return {"priority": _PRIORITIES[values.get("priority", "normal")], "reason": reason}


def _run_set(client: Client, jobs: Sequence[Job], common: JsonObject) -> bool:
    left_early = _find_moved_instances(client, jobs)
    if left_early:
        warn("The cluster has changed since the plan was made; the rest of it is not carried out:")
        warn("\n".join(f"  {line}" for line in left_early))
        return False
    submitted = client.submit_many_jobs([[op | common for op in job.opcodes] for job in jobs])
    for one in submitted:
        if one.job_id is None:
            warn(f"A job was refused: {one.error}")
    ids = [one.job_id for one in submitted if one.job_id is not None]
    say(f"Got job IDs {', '.join(map(str, ids))}")
    ends = [client.wait_until_ended(job) for job in ids]
    for job_id, status in zip(ids, ends):
        if status != "success":
            warn(f"Job {job_id} ended with status {status}; see: gnt-job info {job_id}")
    return len(ids) == len(jobs) and all(status == "success" for status in ends)


def _find_moved_instances(client: Client, jobs: Sequence[Job]) -> list[str]:
    """Instances that are not where the jobs of a set expect them."""
    expected = {job.expects[0]: job.expects[1:] for job in jobs if job.expects is not None}
    if not expected:
        return []
    qfilter = ["|", *(["=", "name", name] for name in expected)]
    found = {}
    for row in client.query("instance", ["name", "pnode", "snodes"], qfilter).data:
        name, primary, others = (value for _, value in row)
        found[name] = (primary or "", others[0] if others else "")
    lines = []
    for name, (primary, secondary) in expected.items():
        if name not in found:
            lines.append(f"instance {name} is gone")
        elif found[name] != (primary, secondary):
            now, planned = (
                ":".join(filter(None, nodes)) for nodes in (found[name], expected[name])
            )
            lines.append(f"instance {name} is on {now}, not on {planned}")
    return lines
