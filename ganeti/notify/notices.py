"""From an event of the cluster to a notice: a name, a severity and a text. Pure.

The events are those of :mod:`ganeti.master.events`. Most of them become notices of severity
``info``; the table :data:`EVENTS` has those that people want to hear of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ganeti import constants, errors
from ganeti.base.json_types import JsonObject
from ganeti.base.text import nearest
from ganeti.filters import compile, tree
from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Operand
from ganeti.filters.patterns import Budget
from ganeti.model.job import JobRecord
from ganeti.model.job_status import JobStatus

#: Characters of a text.
LONGEST = 1000
#: Severities; ``ok`` tells of the end of something.
SEVERITIES = ("info", "ok", "warning", "error")


@dataclass(frozen=True)
class Meaning:
    """Severity and meaning of an event of note; people read it in doc/admin/notifications.md."""

    severity: str
    doc: str
    #: seconds that it must last before a notice is sent; only for what lasts
    hold: float = 0.0


#: Events that are sent unless a filter says otherwise; of those that last, also the end.
EVENTS = {
    "node-unreachable": Meaning("error", "A node does not answer for half a minute", 30.0),
    "node-fenced": Meaning("error", "A node was proven to be dead, until it is set online again"),
    "instance-left-down": Meaning(
        "error", "An instance of a dead node should run, and does not start elsewhere", 60.0
    ),
    "disk-degraded": Meaning("warning", "A mirrored disk is not in sync for five minutes", 300.0),
    "finding": Meaning("warning", "gnt-cluster verify found something; its severity"),
    "certificate-expiring": Meaning("warning", "A certificate of a node ends within 30 days"),
    "backup-overdue": Meaning(
        "warning", "The last good backup is older than one and a half times its interval"
    ),
    "backup-failed": Meaning("error", "A job that makes or verifies a backup failed"),
    "instance-ended": Meaning("warning", "A guest ended by itself"),
    "instance-restarted": Meaning("warning", "The watcher started an instance that was down"),
    "instance-recovered": Meaning("warning", "An instance of a dead node was started elsewhere"),
    "instance-failed": Meaning("error", "The watcher could not start an instance"),
    "job-failed": Meaning("error", "Any other job failed"),
    "master-changed": Meaning("warning", "Another node is the master"),
    "test": Meaning("ok", "Somebody tries a notification"),
}
_BACKUPS = frozenset({"OP_BACKUP_RUN", "OP_BACKUP_VERIFY"})
_STARTS = frozenset({"OP_INSTANCE_STARTUP", "OP_INSTANCE_REBOOT", "OP_INSTANCE_ACTIVATE_DISKS"})


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """The notice of one event for receivers; ``key`` is that of its begin and of its end."""

    id: str
    key: str
    #: seconds since 1970
    time: float
    event: str
    kind: str
    severity: str
    object: str
    objects: tuple[str, ...] = ()
    text: str = ""
    #: what the event says besides
    data: JsonObject = {}


@dataclass(frozen=True)
class JobStory:
    """The facts of an ended job that a notice needs."""

    opcodes: frozenset[str] = frozenset()
    #: whether the watcher asked for it
    of_watcher: bool = False
    #: whether the master asked for it, as a node was dead
    of_recovery: bool = False
    error: str = ""


def read_story(record: JobRecord) -> JobStory:
    """The facts of a job for a notice."""
    failed = next((op for op in record.ops if op.status is JobStatus.ERROR), None)
    sources = {entry[0] for op in record.ops for entry in op.input.get("reason") or ()}
    return JobStory(
        frozenset(str(op.input.get("OP_ID")) for op in record.ops),
        constants.WATCHER_SOURCE in sources,
        not sources.isdisjoint(constants.RECOVERY_SOURCES),
        "" if failed is None else _error_text(failed.result),
    )


def _error_text(result: object) -> str:
    """The text in the encoded error of an opcode: ``[name, [text, ...]]``."""
    if isinstance(result, list | tuple) and len(result) == 2 and result[1]:
        inner = result[1]
        return str(inner[0] if isinstance(inner, list | tuple) else inner)
    return "" if result is None else str(result)


def from_event(event: Mapping[str, Any], job: JobStory | None) -> Notice:
    """The notice of an event; ``job`` is that of a job that has ended."""
    kind, change, data = event["kind"], event["change"], event["data"]
    name, text = f"{kind}-{change}", ""
    severity = EVENTS[name].severity if name in EVENTS else "info"
    if change == "condition":
        name, severity, text = data["event"], data["severity"], data["text"]
    elif kind == "job" and change == "status":
        name, severity, text = _judge_job(event, job or JobStory())
    elif name == "instance-ended":
        text = f"The guest of instance {event['object']} on {data['node']} ended by itself"
    return Notice(
        id=event["id"],
        key=data["key"] if change == "condition" else event["id"],
        time=event["time"],
        event=name,
        kind=kind,
        severity=severity,
        object=event["object"],
        objects=tuple(event["objects"]),
        text=_flatten(text or f"{kind} {event['object']}: {change}"),
        data=data,
    )


def _judge_job(event: Mapping[str, Any], job: JobStory) -> tuple[str, str, str]:
    """Name, severity and text of a change of the status of a job."""
    status = event["data"]["status"]
    what = f"Job {event['object']} ({', '.join(event['data']['summary'])})"
    starts = job.of_watcher and bool(job.opcodes & _STARTS)
    if status == JobStatus.ERROR:
        name = "job-failed"
        if job.opcodes & _BACKUPS:
            name = "backup-failed"
        elif starts:
            name = "instance-failed"
        return name, EVENTS[name].severity, f"{what} failed: {job.error}"
    if status == JobStatus.SUCCESS and starts and "OP_INSTANCE_STARTUP" in job.opcodes:
        name = "instance-restarted"
        return name, EVENTS[name].severity, f"{what}: the watcher started what was down"
    recovers = job.of_recovery and "OP_INSTANCE_FAILOVER" in job.opcodes
    if status == JobStatus.SUCCESS and recovers:
        name = "instance-recovered"
        return name, EVENTS[name].severity, f"{what}: an instance of a dead node runs elsewhere"
    return f"job-{status}", "info", f"{what}: {status}"


def _flatten(text: str) -> str:
    """One line without control characters."""
    words = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * LONGEST])
    return " ".join(words.split())[:LONGEST]


# filters ---------------------------------------------------------------------------------

#: Fields for filters.
FIELDS: dict[str, tuple[FieldKind, Callable[[Notice], object], str]] = {
    "event": (FieldKind.TEXT, lambda n: n.event, "Name of the event"),
    "kind": (FieldKind.TEXT, lambda n: n.kind, "Kind of the object: job, node, instance, ..."),
    "severity": (FieldKind.TEXT, lambda n: n.severity, f"One of {', '.join(SEVERITIES)}"),
    "object": (FieldKind.TEXT, lambda n: n.object, "Name of the object, or id of the job"),
    "objects": (FieldKind.OTHER, lambda n: n.objects, "All names that belong to it"),
    "text": (FieldKind.TEXT, lambda n: n.text, "What happened"),
    "time": (FieldKind.FLOAT, lambda n: n.time, "When it happened, in seconds since 1970"),
}


def _operand(name: str) -> Operand:
    if name not in FIELDS:
        raise errors.ParameterError(
            f"a notice has no field '{name:.60}'{nearest(name[:60], FIELDS)};"
            f" choose from {', '.join(FIELDS)}"
        )
    return Operand(name, FIELDS[name][0])


def compile_filter(qfilter: object) -> Callable[[Notice], bool]:
    """Which notices a notification is about; null is all but those of severity ``info``.

    A regular expression that takes too long counts as a match: better one message too many.

    Raises:
        QueryFilterParseError, ParameterError: the filter is wrong.
    """
    read = tree.from_wire(qfilter)
    if read is None:
        return lambda notice: notice.severity != "info"
    compile.check(read, _operand)
    budget = Budget(1.0)

    def column(name: str) -> Callable[[Notice], tuple[int, object]]:
        get = FIELDS[name][1]
        return lambda notice: (0, get(notice))

    test = compile.predicate(read, _operand, column, budget)

    def passes(notice: Notice) -> bool:
        budget.start()
        try:
            return test(notice)
        except errors.ParameterError:
            return True

    return passes


def summarize(notices: Sequence[Notice]) -> str:
    """Make the subject of a message: its worst notice, and the number of the others."""
    worst = max(notices, key=lambda notice: SEVERITIES.index(notice.severity))
    more = f" and {len(notices) - 1} more" if len(notices) > 1 else ""
    return f"{worst.event} {worst.object}{more}"
