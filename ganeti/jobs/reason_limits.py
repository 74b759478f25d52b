"""Limits that jobs bring along in their reason: ``rate-limit:N:text``. Pure.

Of all jobs with the very same text at most N run at a time; one with several such texts needs room
under each. Who hands in many jobs keeps them from taking the cluster, without a filter rule.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from ganeti.base.text import join_names
from ganeti.jobs.filter_predicates import JobFacts

_FORM = re.compile(r"rate-limit:([1-9][0-9]{0,8}):")


def limits(job: JobFacts) -> dict[str, int]:
    """The texts under which a job counts, each with its limit."""
    found: dict[str, int] = {}
    for op in job.ops:
        for entry in op.get("reason") or ():
            text = entry[1] if len(entry) > 1 else ""
            form = _FORM.match(text)
            if form:
                found[text] = int(form[1])
    return found


def obstacle(
    job: JobFacts, running: Mapping[str, Collection[int]]
) -> tuple[str, tuple[int, ...]] | None:
    """Why a job has to wait and for which jobs; None when there is room under all its limits."""
    for text, limit in limits(job).items():
        others = tuple(sorted(set(running.get(text, ())) - {job.id}))
        if len(others) >= limit:
            names = join_names(str(job_id) for job_id in others)
            reason = f"its reason '{text:.200}' lets {limit} such jobs run at a time, now {names}"
            return reason, others
    return None


def count(jobs: Iterable[JobFacts]) -> dict[str, set[int]]:
    """Which of the running jobs count under which text."""
    result: dict[str, set[int]] = {}
    for job in jobs:
        for text in limits(job):
            result.setdefault(text, set()).add(job.id)
    return result
