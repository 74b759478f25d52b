"""The client's methods about jobs and events."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ganeti.base import jsonio
from ganeti.base.clock import Clock
from ganeti.base.json_types import JsonObject
from ganeti.rapi.client_link import GanetiApiError, Link, Query
from ganeti.rapi.client_objects import ROOT, ObjectsClient, dry

JOB_STATUS_QUEUED: Final = "queued"
JOB_STATUS_WAITING: Final = "waiting"
JOB_STATUS_CANCELING: Final = "canceling"
JOB_STATUS_RUNNING: Final = "running"
JOB_STATUS_CANCELED: Final = "canceled"
JOB_STATUS_SUCCESS: Final = "success"
JOB_STATUS_ERROR: Final = "error"
JOB_STATUS_PENDING: Final = frozenset([JOB_STATUS_QUEUED, JOB_STATUS_WAITING, JOB_STATUS_CANCELING])
JOB_STATUS_FINALIZED: Final = frozenset([JOB_STATUS_CANCELED, JOB_STATUS_SUCCESS, JOB_STATUS_ERROR])
JOB_STATUS_ALL: Final = frozenset([JOB_STATUS_RUNNING]) | JOB_STATUS_PENDING | JOB_STATUS_FINALIZED

#: Seconds the server lets one request wait for the end of a job.
_LONGEST_WAIT = 60.0
#: Seconds without even a heartbeat after which a stream of events is taken for dead.
_SILENCE = 45.0


class EventsLost(GanetiApiError):
    """Events are missing: the client was away for too long, or the master was restarted."""


class JobsClient(ObjectsClient):
    """Requests about jobs and the stream of events; see :class:`ObjectsClient` for errors."""

    def __init__(self, link: Link, logger: logging.Logger, clock: Clock) -> None:
        super().__init__(link)
        self._logger = logger
        self._clock = clock

    def GetJobs(self, bulk: bool = False) -> list[Any]:
        """Ids of the jobs, or with ``bulk`` more about them."""
        found = self._list("/jobs", "id", bulk=bulk)
        return list(found) if bulk else [int(number) for number in found]

    def GetJobStatus(self, job_id: int | str) -> JsonObject:
        """Everything about a job."""
        return dict(self._get(f"/jobs/{job_id}"))

    def WaitForJobCompletion(self, job_id: int | str, period: float = 5, retries: int = -1) -> bool:
        """Whether a job succeeds; waits up to ``retries`` times ``period`` seconds (-1: for ever).

        The server says when the job has ended. Only who may not wait there asks each ``period``.
        """
        until = None if retries == -1 else self._clock.monotonic() + max(0, retries) * period
        while True:
            left = _LONGEST_WAIT if until is None else until - self._clock.monotonic()
            seconds = max(0.0, min(left, _LONGEST_WAIT))
            status = self._wait_once(job_id, seconds, period)["status"]
            if status in JOB_STATUS_FINALIZED:
                return bool(status == JOB_STATUS_SUCCESS)
            if left <= 0:
                return False

    def Wait(self, job_id: int | str, timeout: float | None = None) -> JsonObject:
        """Wait until a job has ended and return everything about it.

        After ``timeout`` seconds (None: never) it is returned as it is then.
        """
        until = None if timeout is None else self._clock.monotonic() + timeout
        while True:
            left = _LONGEST_WAIT if until is None else max(0.0, until - self._clock.monotonic())
            job = self._wait_once(job_id, min(left, _LONGEST_WAIT))
            if job["status"] in JOB_STATUS_FINALIZED or left <= 0:
                return job

    def _wait_once(self, job_id: int | str, seconds: float, period: float = 5.0) -> JsonObject:
        query: Query = [("timeout", f"{seconds:g}")]
        try:
            return dict(self._get(f"/jobs/{job_id}/wait", query))
        except GanetiApiError as err:
            if err.code != 403:
                raise
        job = self.GetJobStatus(job_id)
        if job["status"] not in JOB_STATUS_FINALIZED:
            self._clock.sleep(min(seconds, period))  # who may not write may not wait at the server
        return job

    def WaitForJobChange(
        self,
        job_id: int | str,
        fields: Sequence[str],
        prev_job_info: Sequence[object] | None,
        prev_log_serial: int | None,
    ) -> JsonObject | None:
        """Wait some seconds for a change: ``{"job_info", "log_entries"}``."""
        body = {
            "fields": list(fields),
            "previous_job_info": prev_job_info,
            "previous_log_serial": prev_log_serial,
        }
        found: JsonObject | None = self._link.request(
            "GET", f"{ROOT}/jobs/{job_id}/wait", None, body
        )
        return found

    def CancelJob(self, job_id: int | str, dry_run: bool = False) -> list[Any]:
        """Cancel a job that has not begun: ``[whether it worked, text]``."""
        return list(self._link.request("DELETE", f"{ROOT}/jobs/{job_id}", dry(dry_run)))

    # events

    def Events(
        self,
        kinds: Sequence[str] = (),
        objects: Sequence[str] = (),
        after: str | None = None,
        *,
        reconnect: bool = True,
    ) -> Iterator[JsonObject]:
        """Yield events of the cluster as they happen; ends only with an error, or when closed.

        Each event has ``id``, ``time``, ``kind``, ``change``, ``object`` and ``data``; the first
        one has the kind ``start`` and says that nothing is missed from now on. ``away`` says that
        the master daemon does not answer; ``start`` follows when it does. ``after`` is the
        ``id`` of the last event that is known. A broken connection is taken up again where it
        broke, with ``reconnect`` once in a row.

        Raises:
            EventsLost: some events cannot be had any more; read the state and begin again.
        """
        query: Query = [("kind", kind) for kind in kinds] + [("object", name) for name in objects]
        failed = False
        while True:
            headers = {"Accept": "text/event-stream"}
            if after is not None:
                headers["Last-Event-ID"] = after
            try:
                for event in _parse(self._link.lines(f"{ROOT}/events", query, headers, _SILENCE)):
                    failed, after = False, event["id"]
                    yield event
            except GanetiApiError as err:
                if isinstance(err, EventsLost) or err.code is not None or failed or not reconnect:
                    raise
                self._logger.info("events: %s; connecting again", err)
            failed = True


def _parse(lines: Iterator[str]) -> Iterator[JsonObject]:
    """Events of the lines of a stream."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, text = line.partition(":")
            fields[name] = text.removeprefix(" ")
            continue
        if "data" in fields:
            kind, number = fields.get("event", ""), fields.get("id", "")
            if kind == "lost":
                raise EventsLost(f"Events before {number} are missing")
            yield {"id": number, "kind": kind, **jsonio.loads(fields["data"])}
        fields.clear()
