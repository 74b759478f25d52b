"""The typed LUXI client: one method for each method of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.base.record import Record
from ganeti.luxi.connection import Connection
from ganeti.model.job_status import JOBS_FINALIZED

Row = list[Any]
#: Seconds that one request waits for a job to change.
JOB_WAIT = 30
#: ``[serial, [seconds, microseconds], type, message]``
LogEntry = list[Any]


class FieldDef(Record):
    """Description of one query field; ``kind`` is text, number, unit, ... or unknown."""

    name: str
    title: str
    kind: str
    doc: str = ""

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> FieldDef:
        return cls(raw["name"], raw["title"], raw["kind"], raw.get("doc", ""))


class QueryResult(Record):
    """Answer of a query: descriptions, and per object one ``[status, value]`` for each field."""

    fields: list[FieldDef]
    data: list[list[tuple[int, Any]]]


class JobChange(Record):
    """Current values of the fields that were requested, and the new log entries."""

    values: Row
    log: list[LogEntry]


class Submission(Record):
    """Result for one job of a batch: its id, or why it was refused."""

    job_id: int | None
    error: str = ""


class Client(Connection):
    """A connection to the master daemon with its methods; see :class:`Connection` for errors."""

    # queries

    def query(self, what: str, fields: Sequence[str], qfilter: object = None) -> QueryResult:
        """Fields of all objects of a kind that pass a filter.

        Unknown fields do not fail: their kind is ``unknown``. A filter of names only fails
        when one of them does not exist.
        """
        raw = self.call("Query", what, list(fields), qfilter)
        rows = [[(status, value) for status, value in row] for row in raw["data"]]
        return QueryResult([FieldDef.from_wire(item) for item in raw["fields"]], rows)

    def query_fields(self, what: str, fields: Sequence[str] | None = None) -> list[FieldDef]:
        """Descriptions of the named fields, or of all."""
        raw = self.call("QueryFields", what, None if fields is None else list(fields))
        return [FieldDef.from_wire(item) for item in raw["fields"]]

    def query_nodes(self, names: Sequence[str], fields: Sequence[str]) -> list[Row]:
        """Bare values; unknown names are missing, values that do not exist are None."""
        return self._rows("QueryNodes", list(names), list(fields), False)

    def query_groups(self, names: Sequence[str], fields: Sequence[str]) -> list[Row]:
        """Like :meth:`query_nodes`."""
        return self._rows("QueryGroups", list(names), list(fields), False)

    def query_networks(self, names: Sequence[str], fields: Sequence[str]) -> list[Row]:
        """Like :meth:`query_nodes`."""
        return self._rows("QueryNetworks", list(names), list(fields), False)

    def query_images(self, names: Sequence[str], fields: Sequence[str]) -> list[Row]:
        """Like :meth:`query_nodes`."""
        return self._rows("QueryImages", list(names), list(fields), False)

    def query_instances(self, names: Sequence[str], fields: Sequence[str]) -> list[Row]:
        """Like :meth:`query_nodes`."""
        return self._rows("QueryInstances", list(names), list(fields), False)

    def query_filters(self, uuids: Sequence[str] | None, fields: Sequence[str]) -> list[Row]:
        """Like :meth:`query_nodes`; no uuids means all."""
        return self._rows("QueryFilters", None if uuids is None else list(uuids), list(fields))

    def query_jobs(self, ids: Sequence[int] | None, fields: Sequence[str]) -> list[Row]:
        """Bare values; a missing job has its id and Nones. No ids means all that live."""
        return self._rows("QueryJobs", None if ids is None else list(ids), list(fields))

    def query_exports(self, nodes: Sequence[str]) -> list[Row]:
        """``[node, export]`` rows."""
        return self._rows("QueryExports", list(nodes), False)

    def query_config_values(self, fields: Sequence[str]) -> Row:
        """Single values about the cluster; unknown ones are None."""
        return list(self.call("QueryConfigValues", list(fields)))

    def query_cluster_info(self) -> JsonObject:
        """Name, versions and settings of the cluster."""
        return dict(self.call("QueryClusterInfo"))

    def query_consoles(self, instance: str) -> JsonObject:
        """Consoles of an instance that runs; its node is asked."""
        return dict(self.call("QueryConsoles", instance))

    def query_tags(self, kind: str, name: str = "") -> list[str]:
        """Tags of an object; the name is ignored for the cluster."""
        return [str(tag) for tag in self.call("QueryTags", kind, name)]

    def query_history(
        self,
        *,
        object: str | None = None,
        kind: str | None = None,
        since: float | None = None,
        until: float | None = None,
        job: int | None = None,
        limit: int | None = None,
    ) -> JsonObject:
        """Changes of the configuration, oldest first; see ``master/history.py`` for the keys.

        Times are seconds since 1970; of more than ``limit`` changes the newest are given.
        """
        wanted = {
            "object": object,
            "kind": kind,
            "since": since,
            "until": until,
            "job": job,
            "limit": limit,
        }
        given = {key: value for key, value in wanted.items() if value is not None}
        return dict(self.call("QueryHistory", given))

    def query_metrics(self) -> dict[str, list[list[Any]]]:
        """Values by metric, see ``model/metrics.py``; no node is called for it."""
        return dict(self.call("QueryMetrics"))

    def query_health(self) -> JsonObject:
        """The health of the cluster, see ``master/health.py``; no node is called for it."""
        return dict(self.call("QueryHealth"))

    def query_recovery(self) -> JsonObject:
        """State of recovery of dead nodes, see ``master/recovery_status.py``; no node is called."""
        return dict(self.call("QueryRecovery"))

    def query_notifications(self) -> list[JsonObject]:
        """Targets of notices with the state of their delivery; without secrets."""
        return list(self.call("QueryNotifications"))

    def query_samples(self, kind: str, name: str, span: str) -> JsonObject:
        """Measurements of a node or an instance over an hour, a day or a month."""
        return dict(self.call("QuerySamples", kind, name, span))

    def query_config_diff(self, begin: float, end: float) -> JsonObject:
        """Differences between the configurations at two times (seconds since 1970)."""
        return dict(self.call("QueryConfigDiff", begin, end))

    def _rows(self, name: str, *args: object) -> list[Row]:
        return [list(row) for row in self.call(name, *args)]

    # jobs

    def submit_job(
        self,
        ops: Sequence[Mapping[str, object]],
        key: str | None = None,
        *,
        user: str | None = None,
    ) -> int:
        """Hand in one job of opcodes in wire form; its id, which is safe on disk.

        With a key of your choice the call can be repeated: the same key never makes a second job.
        ``user`` is whom the job is submitted for; only a trusted daemon may name somebody.
        """
        more = [] if key is None and user is None else [key]
        if user is not None:
            more.append(user)
        return int(self.call("SubmitJob", list(ops), *more))

    def explain_job(self, job_id: int) -> JsonObject:
        """Why a job does not go on; see ``jobs/explain.py`` for the keys."""
        return dict(self.call("ExplainJob", job_id))

    def query_job_log(self, job_id: int, nodes: Sequence[str] = ()) -> JsonObject:
        """Log lines of daemons about a job; see ``master/job_log.py`` for the keys.

        Asks the named nodes, or all.
        """
        return dict(self.call("QueryJobLog", job_id, list(nodes)))

    def submit_job_to_drained_queue(self, ops: Sequence[Mapping[str, object]]) -> int:
        """Like :meth:`submit_job`, also while the queue takes no other jobs."""
        return int(self.call("SubmitJobToDrainedQueue", list(ops)))

    def submit_many_jobs(self, jobs: Sequence[Sequence[Mapping[str, object]]]) -> list[Submission]:
        """Hand in several jobs at once; relative dependencies count inside the batch."""
        raw = self.call("SubmitManyJobs", [list(ops) for ops in jobs])
        return [Submission(int(value)) if ok else Submission(None, str(value)) for ok, value in raw]

    def wait_for_job_change(
        self,
        job_id: int,
        fields: Sequence[str],
        previous: Row | None,
        previous_serial: int | None,
        timeout: int,
    ) -> JobChange | None:
        """Wait until the values differ from ``previous`` or the log has newer entries.

        Blocks at most ``timeout`` seconds (the server has a cap of its own); then returns the
        values as they are, or None. A job that has ended answers at once.

        Raises:
            JobLost: no such job, or it is archived.
        """
        raw = self.call(
            "WaitForJobChange", job_id, list(fields), previous, previous_serial, timeout
        )
        if raw is None or raw == "nochange":
            return None
        values, log = raw
        return JobChange(list(values), [list(entry) for entry in log])

    def wait_until_ended(
        self, job_id: int, show: Callable[[LogEntry], object] = lambda _entry: None
    ) -> str:
        """Block until a job has ended; returns its status. ``show`` gets each entry of its log.

        Raises:
            JobLost: no such job, or it is archived.
        """
        known: Row | None = None
        serial: int | None = None
        while True:
            change = self.wait_for_job_change(job_id, ["status"], known, serial, JOB_WAIT)
            if change is None:
                continue
            known = change.values
            for entry in change.log:
                serial = int(entry[0])
                show(entry)
            if known[0] in JOBS_FINALIZED:
                return str(known[0])

    def archive_job(self, job_id: int) -> bool:
        """Move an ended job to the archive; False when it has not ended or is not there."""
        return bool(self.call("ArchiveJob", job_id))

    def auto_archive_jobs(self, age: int, timeout: int) -> tuple[int, int]:
        """Archive what ended more than ``age`` seconds ago (-1: everything that ended).

        Works for about ``timeout`` seconds. Returns the numbers of archived jobs and of jobs left.
        """
        archived, left = self.call("AutoArchiveJobs", age, timeout)
        return int(archived), int(left)

    def cancel_job(self, job_id: int, *, kill: bool = False) -> tuple[bool, str]:
        """Cancel a job that has not started to work; whether it worked, and a text."""
        done, message = self.call("CancelJob", job_id, kill)
        return bool(done), str(message)

    def change_job_priority(self, job_id: int, priority: int) -> tuple[bool, str]:
        """Change the priority (-20 first, 19 last); whether it worked, and a text."""
        done, message = self.call("ChangeJobPriority", job_id, priority)
        return bool(done), str(message)

    def set_drain_flag(self, flag: bool) -> None:
        """Let the queue take no new jobs, or take them again."""
        self.call("SetDrainFlag", flag)

    def set_watcher_pause(self, until: float | None) -> float | None:
        """Keep the watcher from acting until a time (Unix seconds); None ends the pause."""
        result = self.call("SetWatcherPause", until)
        return None if result is None else float(result)

    # events

    def note_guest_end(self, instance: str, node: str, status: str) -> None:
        """Tell those who follow events that the guest of an instance (uuid) ended by itself."""
        self.call("NoteGuestEnd", instance, node, status)

    def wait_for_events(
        self, after: str | None, timeout: float, wanted: Mapping[str, Sequence[str]] | None = None
    ) -> JsonObject:
        """Wait for events after a position; without one return the current position at once.

        ``wanted`` is ``{"kind": [..], "object": [..]}``. The answer has ``events``, the position
        ``last`` to go on from, and ``lost``: events are missing before these. It is empty after
        ``timeout`` seconds, which the server caps.
        """
        found: JsonObject = self.call("WaitForEvents", after, wanted, timeout)
        return found

    # job filters

    def replace_filter(
        self,
        uuid: str | None,
        priority: int,
        predicates: Sequence[object],
        action: object,
        reason: Sequence[object],
        *,
        user: str | None = None,
    ) -> str:
        """Insert or replace a filter rule; its uuid. ``user`` as in :meth:`submit_job`."""
        more = [] if user is None else [user]
        rule = (priority, list(predicates), action, list(reason))
        return str(self.call("ReplaceFilter", uuid, *rule, *more))

    def delete_filter(self, uuid: str, *, user: str | None = None) -> None:
        """Delete a filter rule; fails when there is none. ``user`` as in :meth:`submit_job`."""
        self.call("DeleteFilter", uuid, *([] if user is None else [user]))
