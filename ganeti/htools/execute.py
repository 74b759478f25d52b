"""Carry out a plan: submit its sets of jobs one after the other and wait for each."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from ganeti.base.clock import SYSTEM, nanoseconds
from ganeti.htools import plan
from ganeti.htools.options import UsageError, Values
from ganeti.htools.program import say, warn
from ganeti.luxi.client import Client
from ganeti.placement.balance import Step

#: What the master calls the priorities of jobs.
_PRIORITIES = {"low": 10, "normal": 0, "high": -10}
_RUNNING = frozenset({"queued", "waiting", "canceling", "running"})
#: Seconds one request waits for a job to change.
_WAIT = 30


def carry_out(sets: Sequence[Sequence[Step]], values: Values) -> int:
    """Submit set by set; after SIGTERM or SIGINT no further set. Returns the exit code.

    A set whose jobs did not all succeed ends the plan: what follows counted on them.
    """
    if "luxi" not in values:
        raise UsageError("jobs can be submitted only with -L")
    asked: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        warn("Stopping after the jobs that run now.")

    before = {n: signal.signal(n, stop) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        socket = values.get("luxi")
        with Client(Path(socket) if socket else None) as client:
            wanted = sets[:1] if "first_job_group" in values else sets
            for number, steps in enumerate(wanted, 1):
                if asked:
                    say(f"Stopped before set {number} of {len(wanted)}.")
                    return 0
                if not _run_set(client, steps, values):
                    return 1
        say("All jobs completed successfully.")
        return 0
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def _run_set(client: Client, steps: Sequence[Step], values: Values) -> bool:
    reason = [["hbal", values.get("reason") or "balance", nanoseconds(SYSTEM.now())]]
    common = {"priority": _PRIORITIES[values.get("priority", "normal")], "reason": reason}
    jobs = [[op | common for op in plan.opcodes(step)] for step in steps]
    submitted = client.submit_many_jobs(jobs)
    for one in submitted:
        if one.job_id is None:
            warn(f"A job was refused: {one.error}")
    ids = [one.job_id for one in submitted if one.job_id is not None]
    say(f"Got job IDs {', '.join(map(str, ids))}")
    ends = [_wait(client, job) for job in ids]
    for job, status in zip(ids, ends):
        if status != "success":
            warn(f"Job {job} ended with status {status}; see: gnt-job info {job}")
    return len(ids) == len(jobs) and all(status == "success" for status in ends)


def _wait(client: Client, job: int) -> str:
    """Block until a job has ended; its status."""
    known = None
    while True:
        change = client.wait_for_job_change(job, ["status"], known, None, _WAIT)
        if change is not None:
            known = change.values
            if known[0] not in _RUNNING:
                return str(known[0])
