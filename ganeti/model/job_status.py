"""States of jobs; the values are the wire strings. Small, as every command imports it."""

from __future__ import annotations

from enum import StrEnum


class JobStatus(StrEnum):
    """State of a job or of one of its opcodes; in the order of a job's life."""

    QUEUED = "queued"
    WAITING = "waiting"
    CANCELING = "canceling"
    RUNNING = "running"
    CANCELED = "canceled"
    SUCCESS = "success"
    ERROR = "error"


JOBS_FINALIZED = frozenset({JobStatus.CANCELED, JobStatus.SUCCESS, JobStatus.ERROR})
JOBS_PENDING = frozenset({JobStatus.QUEUED, JobStatus.WAITING, JobStatus.CANCELING})
