"""Requests that are answered when there is news: of a job, or an event."""

from __future__ import annotations

from ganeti import constants
from ganeti.base.json_types import JsonObject
from ganeti.luxi.reply import Reply
from ganeti.master import events
from ganeti.master.core import Core
from ganeti.master.events import Events, Filter
from ganeti.master.waiting import Wait, Waiting
from ganeti.model.job import JobRecord
from ganeti.query.classic import classic


class ClientWaits:
    """Puts such requests among the waits."""

    def __init__(self, core: Core, waiting: Waiting, happened: Events) -> None:
        self._core = core
        self._waiting = waiting
        self._events = happened

    def wait_for_job(self, args: JsonObject, reply: Reply) -> None:
        """Answer when the job has news for the client, or when the time is over."""
        job_id = int(args["job"])  # older clients send it as a text
        fields, known, known_log = args["fields"], args["prev_job"], args["prev_log"]
        redacted = bool(args.get("redacted"))

        def check(last: bool) -> list[object] | None:
            entries, done = self._read_log_after(job_id, known_log or 0)
            values = classic(self._core.sources(), "job", [job_id], fields, redacted=redacted)[0]
            if entries or done or last or known is None or values != known:
                return [values, [] if last else entries]
            return None

        check(True)  # unknown jobs and fields fail now
        wait = Wait(job_id, check, reply.ok, reply.fail)
        reply.on_abandoned = lambda: self._waiting.drop(wait)
        limit = self._core.store.current.cluster.max_tracked_jobs
        self._waiting.add(wait, _read_timeout(args), limit=limit)

    def wait_for_events(self, args: JsonObject, reply: Reply) -> None:
        """Answer when something happened that the client wants, or when the time is over."""
        wanted, position = Filter.from_wire(args["filter"]), args["after"]

        def check(last: bool) -> JsonObject | None:
            nonlocal position
            found = self._events.read_after(position, wanted)
            if found["events"] or found["lost"] or last or position is None:
                return found
            position = found["last"]
            return None

        wait = Wait(events.KEY, check, reply.ok, reply.fail)
        reply.on_abandoned = lambda: self._waiting.drop(wait)
        self._waiting.add(wait, _read_timeout(args))

    def _read_log_after(self, job_id: int, serial: int) -> tuple[list[object], bool]:
        """Log entries with a higher serial, and whether the job is finished."""

        def read(record: JobRecord) -> tuple[list[object], bool]:
            return [entry for _index, entry in record.log_after(serial)], record.finalized

        found: tuple[list[object], bool] = self._core.queue.view(read, job_id)
        return found


def _read_timeout(args: JsonObject) -> float:
    return min(float(args["tmout"]), constants.WAIT_FOR_JOB_CHANGE_CAP)
