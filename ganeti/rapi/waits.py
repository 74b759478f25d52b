"""The two resources that answer when something happens: events, and the wait for a job."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ganeti import errors
from ganeti.base import jsonio
from ganeti.base.clock import SYSTEM
from ganeti.model.job_status import JOBS_FINALIZED
from ganeti.net.http_detached import Detached
from ganeti.net.loop import Loop
from ganeti.rapi import failures, parking, schemas
from ganeti.rapi.access_log import LATER
from ganeti.rapi.event_stream import EventStream, Wish
from ganeti.rapi.login import SESSIONS
from ganeti.rapi.parking import LuxiCall, WaitingClient
from ganeti.rapi.route import Arg, ArgKind, Call, Route

#: Keys of the environment of a request for the objects that these handlers need.
WAITING_ROOM, TAKE_OVER = "ganeti.waiting_room", "ganeti.take_over"
#: Seconds: the default and the cap of the interface, and the cap of a wait for the end of a job.
CHANGE_CAP, END_CAP = 10.0, 60.0
#: Serial after which there is no log entry.
_NO_LOG = 2**60
_JOB = (
    "id",
    "ops",
    "status",
    "summary",
    "opstatus",
    "received_ts",
    "start_ts",
    "end_ts",
    "oplog",
    "opresult",
)


class WaitingRoom:
    """The thread that keeps waiting clients, and what they wait for."""

    def __init__(self, path: Path) -> None:
        """``path`` is the LUXI socket."""
        self._loop = Loop("parking")
        self._path = path
        self.events = EventStream(self._loop, path)
        self._waits: set[_JobWait] = set()

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        """Hang up on all who wait, end the thread."""
        self._loop.call_soon(self._close)
        self._loop.stop()

    def _close(self) -> None:
        self.events.close()
        for wait in [*self._waits]:
            wait.close()

    def wait_for_job(self, connection: Detached, question: Question) -> None:
        """Answer a client when a job has news, or in time; from any thread."""
        self._loop.call_soon(lambda: self._add(connection, question))

    def _add(self, connection: Detached, question: Question) -> None:
        wait = _JobWait(self._loop, self._path, connection, question, self._waits.discard)
        self._waits.add(wait)
        wait.begin()


@dataclass(frozen=True)
class Question:
    """The question of a client about a job.

    Without ``fields`` it waits for the end of the job and gets the whole of it; else for a change
    of the fields against ``values``, or a log entry after ``serial``.
    """

    job_id: int
    seconds: float
    fields: list[str] | None = None
    values: list[object] | None = None
    serial: int | None = None
    #: whether sensitive parameters are hidden
    redacted: bool = False
    #: receives the HTTP status and the bytes of the answer
    note: Callable[[int, int], None] = lambda _status, _size: None


class _JobWait:
    """One client that waits for a job."""

    def __init__(
        self,
        loop: Loop,
        path: Path,
        connection: Detached,
        question: Question,
        ended: Callable[[_JobWait], None],
    ) -> None:
        self._question = question
        self._ended = ended
        self._until = SYSTEM.monotonic() + question.seconds
        self._luxi = LuxiCall(loop, path)
        self._client = WaitingClient(loop, connection, self.close)

    def begin(self) -> None:
        self._ask(self._question.values)

    def _ask(self, seen: Sequence[object] | None) -> None:
        left = max(0.0, self._until - SYSTEM.monotonic())
        whole = self._question.fields is None
        fields = ["status"] if whole else self._question.fields
        serial = _NO_LOG if whole else self._question.serial
        # Without values that were seen before, the answer comes at once.
        args = [
            self._question.job_id,
            fields,
            seen,
            serial,
            math.ceil(left),
            self._question.redacted,
        ]
        self._luxi.ask(
            "WaitForJobChange", args, self._finish_or_ask if whole else self._change, self._fail
        )

    def _change(self, found: Sequence[object]) -> None:
        self._reply({"job_info": found[0], "log_entries": found[1]})

    def _finish_or_ask(self, found: list[Any]) -> None:
        if found[0][0] in JOBS_FINALIZED or SYSTEM.monotonic() >= self._until:
            args = [[self._question.job_id], list(_JOB), self._question.redacted]
            self._luxi.ask("QueryJobs", args, self._show, self._fail)
        else:
            self._ask(found[0])

    def _show(self, rows: list[Any]) -> None:
        self._reply(dict(zip(_JOB, rows[0], strict=True)))

    def _reply(self, value: object) -> None:
        self._send(200, jsonio.dumps_bytes(value) + b"\n", {})

    def _fail(self, err: errors.GanetiError) -> None:
        status = failures.status_of(err)
        body = failures.body(status, failures.text_of(err))
        self._send(status, body, failures.headers_of(err, status))

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self._luxi.close()
        self._question.note(status, len(body))
        self._client.send(parking.answer(status, body, headers), last=True)

    def close(self) -> None:
        """Forget the client."""
        self._luxi.close()
        self._client.close()
        self._ended(self)


# handlers


def _wait(call: Call) -> None:
    """Wait for a job; the answer comes from the waiting room."""
    body = call.body
    cap = END_CAP if body is None else CHANGE_CAP
    question = Question(int(call.path["job_id"]), _seconds(call, cap))
    if body is not None:
        question = _read_body(body, question)
    if call.identity.limited:
        call.luxi.query_jobs([question.job_id], ["id"])  # refuses the jobs of others
    room, take_over = _room(call)
    question = replace(question, note=_log_later(call), redacted=call.identity.redacted)
    take_over(lambda connection: room.wait_for_job(connection, question))


def _read_body(body: object, question: Question) -> Question:
    if not isinstance(body, dict) or not isinstance(body.get("fields"), list):
        raise failures.make_bad_request("The body must be an object with a list 'fields'")
    values, serial = body.get("previous_job_info"), body.get("previous_log_serial")
    if values is not None and not isinstance(values, list):
        raise failures.make_bad_request("'previous_job_info' must be a list or null")
    if serial is not None and (isinstance(serial, bool) or not isinstance(serial, int)):
        raise failures.make_bad_request("'previous_log_serial' must be a number or null")
    return Question(question.job_id, question.seconds, body["fields"], values, serial)


def _seconds(call: Call, cap: float) -> float:
    text = call.query.get("timeout")
    if text is None:
        return CHANGE_CAP
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise failures.make_bad_request(
            f"Query argument 'timeout' must be seconds, not '{text[:60]}'"
        )
    return min(seconds, cap)


def _events(call: Call) -> None:
    """Send events until the client leaves; sent from the waiting room."""
    if call.identity.limited:
        raise errors.AccessError("A token that is limited to some objects gets no events")
    after = call.environ.get("HTTP_LAST_EVENT_ID") or call.query.get("after")
    words = {name: frozenset(call.query.get(name, ())) for name in ("kind", "object")}
    room, take_over = _room(call)
    wish = Wish(words["kind"], words["object"], after, _may_stay(call), _log_later(call))
    take_over(lambda connection: room.events.add(connection, wish))


def _may_stay(call: Call) -> Callable[[], bool]:
    """Whether who follows events may go on: not when the session is over meanwhile."""
    session, sessions = call.session, call.environ.get(SESSIONS)
    return lambda: session is None or sessions is None or sessions.is_alive(session)


def _log_later(call: Call) -> Callable[[int, int], None]:
    later = call.environ.get(LATER)
    return (lambda _status, _size: None) if later is None else later()


def _room(call: Call) -> tuple[WaitingRoom, Callable[[Callable[[Detached], None]], None]]:
    try:
        return call.environ[WAITING_ROOM], call.environ[TAKE_OVER]
    except KeyError:
        raise failures.Refused(501, "This server cannot let requests wait") from None


_TIMEOUT = Arg(
    "timeout",
    ArgKind.TEXT,
    "Seconds to wait, 10 without it; at most 60 for the end of a job, else 10",
)
_QUESTION = {
    "type": "object",
    "required": ["fields"],
    "properties": {
        "fields": {"type": "array", "items": {"type": "string"}},
        "previous_job_info": {"type": ["array", "null"]},
        "previous_log_serial": {"type": ["integer", "null"]},
    },
}

ROUTES = (
    Route(
        "GET",
        "/2/jobs/{job_id}/wait",
        "Wait for the end of a job, or with a body for a change of some of its fields",
        _wait,
        access=("write",),
        query=(_TIMEOUT,),
        body=lambda: _QUESTION,
        waits=END_CAP,
        answer={
            "oneOf": [
                schemas.record(_JOB),
                {
                    "type": "object",
                    "required": ["job_info", "log_entries"],
                    "properties": {"job_info": {"type": "array"}, "log_entries": {"type": "array"}},
                },
            ]
        },
        statuses=(404,),
    ),
    Route(
        "GET",
        "/2/events",
        "Follow what happens, as Server-Sent Events (text/event-stream)",
        _events,
        access=("read", "write"),
        query=(
            Arg("kind", ArgKind.REPEATED, "Kinds of events: job, instance, node, ..."),
            Arg("object", ArgKind.REPEATED, "Names, uuids or job ids to hear of"),
            Arg("after", ArgKind.TEXT, "As the header Last-Event-ID"),
        ),
        answer={"type": "string"},
        content_type="text/event-stream",
        waits=END_CAP,
    ),
)
