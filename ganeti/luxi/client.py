"""The typed LUXI client: one method for each method of the protocol.

A client connects with its first request and is for one thread. When the connection is lost, a
request that only reads is asked again on a new connection; a request that changes something is
not, because nobody knows whether it was carried out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from ganeti import constants, errors, paths
from ganeti.base import patience
from ganeti.base.record import Record
from ganeti.luxi import calls
from ganeti.net import unix_socket

Row = list[Any]
#: ``[serial, [seconds, microseconds], type, message]``
LogEntry = list[Any]

#: Seconds the socket may be missing right after its daemon ended (it is being restarted).
RESTART_GRACE = 2.0
#: Seconds a daemon that holds its pid file may take until it listens.
STARTING_LIMIT = 30.0
#: Seconds to look for a new master daemon when a connection was lost while reading.
RECONNECT_LIMIT = 60.0


class _Unreachable(errors.NoMasterError):
    """Nobody serves LUXI here; goes over wires as its parent."""

    @property
    def wire_name(self) -> str:
        return errors.NoMasterError.__name__


class NotClusterError(_Unreachable):
    """This machine belongs to no cluster."""

    exit_code: ClassVar[int] = constants.EXIT_NOTCLUSTER


class NotMasterError(_Unreachable):
    """Another node is the master."""

    exit_code: ClassVar[int] = constants.EXIT_NOTMASTER


class MasterDownError(_Unreachable):
    """This node is the master, but its daemon does not run."""

    exit_code: ClassVar[int] = constants.EXIT_FAILURE


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
    """Current values of the fields that were asked for, and the new log entries."""

    values: Row
    log: list[LogEntry]


class Submission(Record):
    """Result for one job of a batch: its id, or why it was refused."""

    job_id: int | None
    error: str = ""


class Client:
    """A connection to the master daemon.

    Every method may raise, besides the errors that the master sends as their own classes:

    NoMasterError: nobody listens; the text tells what to do (see :func:`explain_absence`).
    TimeoutError: no answer within twice ``io_timeout`` seconds.
    ConnectionClosedError: the daemon ended before it answered.
    RequestError: the daemon did not understand the request.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        connect_timeout: float = 30.0,
        io_timeout: float = float(constants.LUXI_READ_TIMEOUT),
        reconnect_limit: float = RECONNECT_LIMIT,
        on_lost: Callable[[str], None] | None = None,
    ) -> None:
        """``path`` is the socket (default: that of this node); times are seconds, to be scaled.

        ``on_lost`` is told once whenever the connection was lost and is looked for again.
        """
        self._paths = paths.current()
        self._path = path or self._paths.luxi_socket
        self._connect_timeout = patience.scaled(connect_timeout)
        self._io_timeout = patience.scaled(io_timeout)
        self._reconnect_limit = patience.scaled(reconnect_limit)
        self._on_lost = on_lost
        self._link: unix_socket.FramedClient | None = None

    def close(self) -> None:
        """Close the connection; the next request opens a new one. Idempotent."""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _where: TracebackType | None,
    ) -> None:
        self.close()

    def call(self, name: str, *args: object) -> Any:
        """Send any request and return its result."""
        return self._read(calls.decode_response, name, args)

    def fetch(self, name: str, *args: object) -> bytes:
        """Send any request and return the JSON text of its result, without reading it."""
        data: bytes = self._read(calls.result_bytes, name, args)
        return data

    def _read(self, decode: Callable[[bytes], Any], name: str, args: Sequence[object]) -> Any:
        method = calls.find(name)
        calls.bind(method, args)
        message = calls.encode_request(name, args)
        try:
            answer = self._exchange(message)
        except errors.ConnectionClosedError as err:
            self.close()
            # With a key the same job is not made twice.
            if not (method.repeatable or (name == "SubmitJob" and args[1:2] not in ((), (None,)))):
                raise errors.ConnectionClosedError(
                    f"{errors.text(err)}. Nobody knows whether {name} was carried out:"
                    " check 'gnt-job list' before trying again"
                ) from err
            answer = self._again(message, errors.text(err))
        try:
            return decode(answer)
        except errors.RequestError:
            # The server hangs up after what it could not understand.
            self.close()
            raise

    def _exchange(self, message: bytes) -> bytes:
        if self._link is not None and not self._link.is_idle():
            # Nothing was sent yet, so that this is safe for changes too.
            self.close()
            return self._again(message, "The master daemon closed the connection")
        if self._link is None:
            self._link = self._connect()
        return self._link.call(message)

    def _again(self, message: bytes, cause: str) -> bytes:
        if self._on_lost is not None:
            self._on_lost(cause)
        self._link = self._open(self._reconnect_limit)
        return self._link.call(message)

    def _connect(self) -> unix_socket.FramedClient:
        try:
            return self._open(0.0)
        except errors.NoMasterError:
            grace = self._grace()
            if not grace:
                raise explain_absence(self._path, self._paths) from None
        return self._open(grace)

    def _open(self, grace: float) -> unix_socket.FramedClient:
        """Connect; a missing listener is waited for up to ``grace`` seconds."""
        try:
            return unix_socket.FramedClient(
                self._path,
                connect_timeout=grace or self._connect_timeout,
                io_timeout=self._io_timeout,
                retry_connect=bool(grace),
            )
        except errors.NoMasterError:
            if not grace:
                raise
            raise explain_absence(self._path, self._paths) from None

    def _grace(self) -> float:
        """Seconds worth waiting for a listener that is not there now."""
        if not _is_master_here(self._paths):
            return 0.0
        from ganeti.base import daemon

        starting = daemon.running_pid(self._paths.pid_file(constants.MASTERD)) is not None
        grace = patience.scaled(STARTING_LIMIT if starting else RESTART_GRACE)
        return min(self._connect_timeout, grace)

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

    def query_cluster_info(self) -> dict[str, Any]:
        """Name, versions and settings of the cluster."""
        return dict(self.call("QueryClusterInfo"))

    def query_tags(self, kind: str, name: str = "") -> list[str]:
        """Tags of an object; the name is not looked at for the cluster."""
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
    ) -> dict[str, Any]:
        """Changes of the configuration, oldest first; see ``master/history.py`` for the keys.

        Times are seconds since the epoch; of more than ``limit`` changes the newest are given.
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

    def query_config_diff(self, begin: float, end: float) -> dict[str, Any]:
        """What differs between the configurations of two times (seconds since the epoch)."""
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

    def explain_job(self, job_id: int) -> dict[str, Any]:
        """Why a job does not go on; see ``jobs/explain.py`` for the keys."""
        return dict(self.call("ExplainJob", job_id))

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

    def archive_job(self, job_id: int) -> bool:
        """Move an ended job to the archive; False when it has not ended or is not there."""
        return bool(self.call("ArchiveJob", job_id))

    def auto_archive_jobs(self, age: int, timeout: int) -> tuple[int, int]:
        """Archive what ended more than ``age`` seconds ago (-1: everything that ended).

        Works for about ``timeout`` seconds; how many were archived and how many not looked at.
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

    def wait_for_events(
        self, after: str | None, timeout: float, wanted: Mapping[str, Sequence[str]] | None = None
    ) -> dict[str, Any]:
        """What happened after a position; without one the position of now, at once.

        ``wanted`` is ``{"kind": [..], "object": [..]}``. The answer has ``events``, the position
        ``last`` to go on from, and ``lost``: events are missing before these. It is empty after
        ``timeout`` seconds, which the server caps.
        """
        found: dict[str, Any] = self.call("WaitForEvents", after, wanted, timeout)
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


def master_name(where: paths.Paths) -> str | None:
    """Name of the master as this node knows it; None when it is in no cluster."""
    with contextlib.suppress(OSError):
        return where.ssconf("master_node").read_text(encoding="utf-8").strip() or None
    return None


def _is_master_here(where: paths.Paths) -> bool:
    return master_name(where) == paths.hostname()


def explain_absence(socket_path: Path, where: paths.Paths) -> errors.NoMasterError:
    """Why nobody listens on the socket, and what to do, as an error with its exit code.

    Reads what this node has on disk about its cluster; asks nobody.
    """
    master = master_name(where)
    if master is None:
        return NotClusterError(
            "This machine belongs to no cluster: run 'gnt-cluster init' to make one here,"
            " or 'gnt-node add' on the master node of an existing one"
        )
    if master != paths.hostname():
        return NotMasterError(
            f"This node is not the master: log in to '{master}' and run the command there"
        )
    return MasterDownError(
        f"The master daemon is not running on this node (nothing listens on {socket_path}):"
        f" start it with 'daemon-util start-master', and look into"
        f" {where.log / 'master-daemon.log'} if it does not stay up"
    )
